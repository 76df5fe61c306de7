"""Downloads as they are shown on a terminal."""

from __future__ import annotations

import io
import logging
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import structlog
from rich.console import Console

from moorage._cli.bars import BarReporter, bars
from moorage._logging import Log, LogSettings, get_logger


def terminal(text: io.StringIO) -> BarReporter:
    return BarReporter(Console(file=text, force_terminal=True, width=120))


def test_each_download_has_a_bar_and_the_log_the_last_word(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "moorage.storage")
    shown = io.StringIO()
    reporter = terminal(shown)

    def download(name: str) -> None:
        with reporter.download(name, 3, "s3://bucket/m", 1000) as arrived:
            arrived(400)
            arrived(600)

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(download, ("first", "second")))
    assert "first 3" in shown.getvalue()
    assert sorted(message[:25] for message in caplog.messages) == ["downloaded model=first ve", "downloaded model=second v"]
    assert all("size=1.0 kB" in message for message in caplog.messages)


def test_bars_go_when_a_download_fails(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "moorage.storage")
    reporter = terminal(io.StringIO())
    with pytest.raises(ConnectionError), reporter.download("m", 1, "s3://bucket/m", 1000):
        raise ConnectionError
    assert caplog.messages == []
    assert not reporter.running


@pytest.fixture
def log() -> Iterator[None]:
    """The log of the command line; everything is put back as it was."""
    root, own = logging.getLogger(), logging.getLogger("moorage")
    handlers, level, own_level = root.handlers, root.level, own.level
    log = Log(LogSettings())
    yield
    log.close()
    root.handlers, root.level = handlers, level
    own.setLevel(own_level)
    structlog.reset_defaults()


@pytest.mark.usefixtures("log")
def test_lines_of_the_log_stand_above_the_bars(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = io.StringIO()
    monkeypatch.setattr(sys, "stderr", shown)
    reporter = terminal(shown)
    with reporter.download("m", 1, "s3://bucket/m", 1000):
        assert sys.stderr is not shown
        get_logger("moorage.test").info("meanwhile")
        assert "meanwhile" in shown.getvalue()
    assert sys.stderr is shown


def test_there_are_none_where_nobody_looks() -> None:
    assert bars() is None
