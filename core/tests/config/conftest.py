"""Strategies made from the same tables that the converters run on, so that a new field is tested as soon as it exists."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import strategies as st

from moorage.config.fields import FieldSpec, Kind, MessageSpec, Shape, model_config_spec
from moorage.config.scalars import single

_TEXT = st.text(st.characters(codec="utf-8"), max_size=5)


def _scalars(spec: FieldSpec) -> st.SearchStrategy[Any]:
    if spec.enum is not None:
        return st.sampled_from(list(spec.enum.names))
    if spec.kind is Kind.INT:
        edges = st.sampled_from([spec.low, -1 if spec.low < 0 else 1, 0, spec.high])
        return edges | st.integers(spec.low, spec.high)
    if spec.kind is Kind.FLOAT:
        floats = st.floats(allow_nan=False, width=32 if spec.single_precision else 64)
        return floats.map(single) if spec.single_precision else floats
    return st.booleans() if spec.kind is Kind.BOOL else _TEXT


def _values(spec: FieldSpec) -> st.SearchStrategy[Any]:
    one = _scalars(spec) if spec.message is None else _messages(spec.message)
    if spec.shape is Shape.LIST:
        return st.lists(one, max_size=2).map(tuple)
    if spec.shape is Shape.MAP:
        return st.dictionaries(_values(spec.map_key), _values(spec.map_value), max_size=2)
    return one


@st.composite
def _messages(draw: st.DrawFn, table: MessageSpec) -> Any:
    """An object of the schema with a few of its fields set."""
    chosen = draw(st.lists(st.sampled_from(table.fields), max_size=4, unique=True)) if table.fields else []
    values: dict[str, Any] = {}
    for spec in chosen:
        if spec.attribute not in values:
            spec.store(values, draw(_values(spec)))
    return table.make(**values)


@pytest.fixture(scope="session")
def configs() -> st.SearchStrategy[Any]:
    """Any configuration that the schema can hold."""
    return _messages(model_config_spec())
