"""The log and its settings."""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog

from moorage._logging import Log, LogSettings
from moorage.errors import InvalidArgument, Unsupported


@pytest.fixture
def make_log(tmp_path: Path) -> Iterator[Callable[..., Log]]:
    """Makes logs to server.log; puts everything back as it was."""
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    made: list[Log] = []

    def make(**settings: Any) -> Log:
        made.append(Log(LogSettings(log_file=str(tmp_path / "server.log"), **settings)))
        return made[-1]

    yield make
    for log in made:
        log.close()
    root.handlers, root.level = handlers, level
    structlog.reset_defaults()


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_what_is_written_follows_the_settings(make_log: Callable[..., Log], tmp_path: Path) -> None:
    log = make_log(log_format="json")
    logger = structlog.get_logger("moorage")
    logger.info("one", model="m")
    logger.debug("too verbose")
    log.update({"log_info": False, "log_verbose_level": 1, "log_colour": True})
    logger.info("not wanted")
    logger.debug("two")
    logging.getLogger("some.library").warning("three %s", "parts")
    written = lines(tmp_path / "server.log")
    assert [line["event"] for line in written] == ["one", "two", "three parts"]
    assert written[0]["model"] == "m" and written[0]["level"] == "info"


def test_settings_are_shown_by_name(make_log: Callable[..., Log], tmp_path: Path) -> None:
    assert make_log().settings() == {
        "log_file": str(tmp_path / "server.log"),
        "log_info": True,
        "log_warning": True,
        "log_error": True,
        "log_verbose_level": 0,
        "log_format": "default",
    }


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"log_info": "no"}, InvalidArgument),
        ({"log_verbose_level": -1}, InvalidArgument),
        ({"log_verbose_level": "1"}, InvalidArgument),
        ({"log_verbose_level": True}, InvalidArgument),
        ({"log_format": "fancy"}, InvalidArgument),
        ({"log_file": "x.log"}, Unsupported),
    ],
)
def test_a_wrong_change_changes_nothing(
    make_log: Callable[..., Log], changes: dict[str, object], error: type[Exception]
) -> None:
    log = make_log()
    before = log.settings()
    with pytest.raises(error, match=next(iter(changes)).replace("log_file", "log file")):
        log.update({"log_warning": False, **changes})
    assert log.settings() == before


def test_a_log_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match=r"--log-file.*nowhere"):
        Log(LogSettings(log_file=str(tmp_path / "nowhere" / "server.log")))


@pytest.mark.parametrize("message, arguments", [("%d requests", ("two",)), ("%s and %s", ("one",))])
def test_a_message_that_cannot_be_formed_fails_nothing(
    make_log: Callable[..., Log], tmp_path: Path, message: str, arguments: tuple[object, ...]
) -> None:
    make_log(log_format="json")
    logging.getLogger("library").warning(message, *arguments)
    logging.getLogger("library").warning("the next")
    assert [line["event"] for line in lines(tmp_path / "server.log")] == ["the next"]


def test_text_that_is_no_text_is_escaped(make_log: Callable[..., Log], tmp_path: Path) -> None:
    make_log(log_format="ISO8601")
    logging.getLogger("library").warning("half a \ud800 pair")
    assert "half a \\ud800 pair" in (tmp_path / "server.log").read_text()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
def test_a_full_disk_fails_nothing() -> None:
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    log = Log(LogSettings(log_file="/dev/full"))
    try:
        logging.getLogger("moorage.test").error("lost")
    finally:
        with contextlib.suppress(OSError):
            log.close()
        root.handlers, root.level = handlers, level
        structlog.reset_defaults()
