"""The tables of the command line show what they are given, whatever that is."""

from __future__ import annotations

import sys

import pytest

from moorage._admin import IndexEntry
from moorage._cli.table import print_models

NASTY = "[/bold] [onnx] [red]:smile:"


def test_markup_in_names_and_reasons_is_text(capsys: pytest.CaptureFixture[str]) -> None:
    print_models([IndexEntry("[/m]", "1", "UNAVAILABLE", NASTY), IndexEntry("good", "1", "READY")])
    shown = capsys.readouterr().err
    assert "[/m]" in shown
    assert all(word in shown for word in NASTY.split())
    assert "READY" in shown


class _Gone:
    """A stream whose reader has gone."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return False

    def write(self, _: str) -> int:
        raise BrokenPipeError

    def flush(self) -> None:
        raise BrokenPipeError


@pytest.mark.parametrize("entries", [[], [IndexEntry("m", "1", "READY")]])
def test_a_reader_that_has_gone_stops_nothing(monkeypatch: pytest.MonkeyPatch, entries: list[IndexEntry]) -> None:
    monkeypatch.setattr(sys, "stderr", _Gone())
    print_models(entries)
