"""Secret values that clients must show: given as they are, or kept in a file that may change while the server runs."""

from __future__ import annotations

import hmac
import logging
import threading
from pathlib import Path
from typing import Final

from moorage.errors import InvalidArgument

FILE_MARK: Final = "@"
_LOGGER = logging.getLogger(__name__)

_Stamp = tuple[int, int, int, int]


class Secret:
    """A value to compare with. Text that begins with `@` names the file that holds it, and `@@` stands for a plain `@`.

    The file is read again when it has changed. While it cannot be read, or is empty, nothing matches. May be asked on any
    thread.
    """

    def __init__(self, text: str) -> None:
        """Raises InvalidArgument if a file is named that cannot be read or is empty."""
        is_file = text.startswith(FILE_MARK) and not text.startswith(FILE_MARK * 2)
        self._path = Path(text.removeprefix(FILE_MARK)) if is_file else None
        self._value: bytes | None = None if is_file else text.removeprefix(FILE_MARK).encode()
        self._stamp: _Stamp | None = None
        self._lock = threading.Lock()
        if self._path is not None:
            try:
                self._read(self._path)
            except OSError as error:
                raise InvalidArgument(f"the file '{self._path}' with the secret cannot be read: {error.strerror}") from error
            if not self._value:
                raise InvalidArgument(f"the file '{self._path}' with the secret is empty")

    def matches(self, given: bytes | None) -> bool:
        """Whether a client has shown the value; None stands for a client that has shown nothing."""
        if self._path is not None:
            self._look(self._path)
        value = self._value
        return given is not None and value is not None and hmac.compare_digest(given, value)

    def _look(self, path: Path) -> None:
        try:
            if _stamp(path) != self._stamp:
                self._read(path)
        except OSError as error:
            if self._value is not None:
                _LOGGER.error("the secret in '%s' cannot be read, nobody is let in by it: %s", path, error.strerror)  # noqa: TRY400
            self._value = self._stamp = None

    def _read(self, path: Path) -> None:
        with self._lock:
            stamp = _stamp(path)  # taken first: a change during the reading is seen at the next look
            self._value = path.read_bytes().strip() or None
            self._stamp = stamp


def _stamp(path: Path) -> _Stamp:
    status = path.stat()
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
