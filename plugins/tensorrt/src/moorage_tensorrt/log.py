"""TensorRT's log: what it says when something returns None, and lines for the server's log."""

from __future__ import annotations

import logging
import threading
from collections import deque
from types import ModuleType
from typing import Any

_LEVELS = {"INTERNAL_ERROR": logging.ERROR, "ERROR": logging.ERROR, "WARNING": logging.WARNING}
_KEPT = 5
_NOTHING = "it gives no reason"

_log = logging.getLogger(__name__)


class Reasons(threading.local):
    """The last errors that were logged on this thread."""

    def __init__(self) -> None:
        self.lines: deque[str] = deque(maxlen=_KEPT)


def make_log(trt: ModuleType) -> Any:
    """A log for everything made with this TensorRT. `take()` gives what went wrong on this thread since the last call."""

    class Log(trt.ILogger):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            trt.ILogger.__init__(self)
            self._reasons = Reasons()

        def log(self, severity: Any, msg: str) -> None:
            """Called by TensorRT, on the thread on which it happens."""
            level = _LEVELS.get(severity.name, logging.DEBUG)
            _log.log(level, "TensorRT: %s", msg)
            if level >= logging.ERROR:
                self._reasons.lines.append(msg)

        def take(self) -> str:
            text = "; ".join(self._reasons.lines) or _NOTHING
            self._reasons.lines.clear()
            return text

    return Log()
