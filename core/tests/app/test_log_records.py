"""What the server's own loggers make for the standard library's logging."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from moorage._logging import Event, Log, LogSettings, get_logger


@pytest.fixture
def log_file(tmp_path: Path) -> Iterator[Path]:
    """The log of the command line goes here; everything is put back as it was."""
    root, own = logging.getLogger(), logging.getLogger("moorage")
    before = (root.handlers, root.level, own.level)
    log = Log(LogSettings(log_file=str(tmp_path / "server.log"), log_format="json"))
    yield tmp_path / "server.log"
    log.close()
    root.handlers, root.level = before[:2]
    own.setLevel(before[2])
    structlog.reset_defaults()


def test_an_event_reads_as_a_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "moorage")
    get_logger("moorage.trial").info("model", model="m", version=1)
    get_logger("moorage.trial").debug("too detailed")
    (record,) = caplog.records
    assert (record.name, record.levelname, record.getMessage()) == ("moorage.trial", "INFO", "model model=m version=1")
    assert isinstance(record.msg, Event) and record.msg.fields == {"model": "m", "version": 1}
    assert record.filename == Path(__file__).name


def test_an_exception_comes_along(caplog: pytest.LogCaptureFixture) -> None:
    try:
        raise ValueError("why")
    except ValueError:
        get_logger("moorage.trial").exception("failed", model="m")
    (record,) = caplog.records
    assert record.levelname == "ERROR" and record.exc_info is not None and "why" in str(record.exc_info[1])


def test_the_command_line_keeps_the_fields_apart(log_file: Path) -> None:
    get_logger("moorage.trial").info("model", model="m", version=1)
    logging.getLogger("moorage.other").warning("plain %s", "text")
    logging.getLogger("library").info("not wanted")
    first, second = (json.loads(line) for line in log_file.read_text().splitlines())
    assert (first["event"], first["model"], first["version"], first["level"]) == ("model", "m", 1, "info")
    assert (second["event"], second["level"]) == ("plain text", "warning")
