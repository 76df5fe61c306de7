"""An emulator as a process of its own."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

PATIENCE: Final = 60.0
"""Seconds in which an emulator has to say that it is ready."""


@contextlib.contextmanager
def announced(command: Sequence[str], ready: str, environment: Mapping[str, str] | None = None) -> Iterator[str]:
    """Run a program while the context lasts. What the group of the pattern `ready` has matched in a line of its output.

    Raises RuntimeError with the output if the program ends, or says nothing of the kind in time.
    """
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        env={**os.environ, **(environment or {})},
    )
    assert process.stdout is not None
    told: list[str] = []
    found: list[str] = []
    known = threading.Event()

    def listen(output: Iterator[str]) -> None:
        for line in output:
            del told[:-200]
            told.append(line)
            match = None if found else re.search(ready, line)
            if match:
                found.append(match[1])
                known.set()
        known.set()

    listener = threading.Thread(target=listen, args=(process.stdout,), daemon=True)
    listener.start()
    try:
        if not known.wait(PATIENCE) or not found:
            raise RuntimeError(f"{command[0]} is not ready; it said:\n{''.join(told)}")
        yield found[0]
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        listener.join()
        process.stdout.close()
