"""Attributes that mean more to the converter than their type says."""

from __future__ import annotations

from typing import Any

from attrs import field

ONEOF = "oneof"
"""Key of attribute metadata: proto field name -> the class that is stored for it."""


def oneof(**members: type) -> Any:
    """An attribute that stands for a `oneof`; None when no member is set."""
    return field(default=None, metadata={ONEOF: members})


def mapping() -> Any:
    """A map field, empty by default; nobody changes it."""
    return field(factory=dict)
