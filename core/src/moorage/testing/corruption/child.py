"""The process in which broken models are tried: it serves what it is told to, and says what became of it.

Run by `moorage.testing.corruption.runner`: `python -m moorage.testing.corruption.child FILE_DESCRIPTOR`.
"""

from __future__ import annotations

import logging
import os
import resource
import sys
import warnings
from collections.abc import Mapping
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np

from moorage.errors import DeadlineExceeded, MoorageError, described
from moorage.server import Server
from moorage.testing.corruption.harms import HARMS
from moorage.testing.corruption.messages import Finding, Harm, Start, Trial
from moorage.testing.corruption.verdicts import Outcome

SHORTEST_CAUSE = 12
"""Letters that an error says besides the model's name, at least."""
SECONDS = 600.0
"""For one run; the parent's limit is shorter."""


class Child:
    """Serves the trials, one after the other, next to a model that must not notice."""

    def __init__(self, server: Server, start: Start) -> None:
        self._server = server
        self._start = start
        server.load(start.intact, start.config, start.files)
        self._wanted = self._intact()

    def try_model(self, trial: Trial) -> Finding:
        """Load and run a model that may be broken."""
        finding = self._tried(trial)
        with suppress(MoorageError):
            self._server.unload(trial.model)
        return finding if self._unharmed() else Finding(Outcome.HARMED, finding.stage, finding.message)

    def try_harm(self, harm: Harm) -> Finding:
        """Run a loaded model before and after its files were harmed."""
        try:
            self._server.load(harm.model)
            before = self._run(harm)
        except MoorageError as error:
            return Finding(Outcome.UNCLEAR, "load", f"the model does not even answer before its files are touched: {error}")
        HARMS[harm.how](Path(harm.version_path))
        try:
            same = all(same_arrays(self._run(harm), before) for _ in range(3))
        except MoorageError as error:
            return Finding(Outcome.CHANGED, "infer", str(error))
        self._server.unload(harm.model)
        return Finding(Outcome.ANSWERED if same else Outcome.CHANGED, "infer")

    def _tried(self, trial: Trial) -> Finding:
        stage = "load"
        try:
            self._server.load(trial.model, trial.config, trial.files)
            stage = "infer"
            self._server.infer(trial.model, trial.inputs, timeout=SECONDS)
        except DeadlineExceeded as error:
            return Finding(Outcome.HUNG, stage, str(error))
        except MoorageError as error:
            return Finding(Outcome.REFUSED if is_clear(error, trial.model) else Outcome.UNCLEAR, stage, str(error))
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the finding
            return Finding(Outcome.UNCLEAR, stage, described(error))
        return Finding(Outcome.ANSWERED, stage)

    def _intact(self) -> dict[str, np.ndarray]:
        return dict(self._server.infer(self._start.intact, self._start.inputs))

    def _run(self, harm: Harm) -> dict[str, np.ndarray]:
        return {name: array.copy() for name, array in self._server.infer(harm.model, harm.inputs, timeout=SECONDS).items()}

    def _unharmed(self) -> bool:
        try:
            return same_arrays(self._intact(), self._wanted)
        except MoorageError:
            return False


def is_clear(error: MoorageError, model: str) -> bool:
    """Whether an error names the model, and says more than that."""
    text = str(error)
    return model in text and len(text.replace(model, "")) - len("model ''") >= SHORTEST_CAUSE


def same_arrays(found: Mapping[str, np.ndarray], wanted: Mapping[str, np.ndarray]) -> bool:
    """Whether outputs are the same to the last bit."""
    return found.keys() == wanted.keys() and all(_same(found[name], array) for name, array in wanted.items())


def _same(found: np.ndarray, wanted: np.ndarray) -> bool:
    if found.shape != wanted.shape or found.dtype != wanted.dtype:
        return False
    return bool(found.tolist() == wanted.tolist()) if wanted.dtype.kind == "O" else found.tobytes() == wanted.tobytes()


def limit_memory(more: int) -> None:
    """Let the process take only so many more bytes, so that a wrong size is an error and not the end of the machine."""
    status = Path("/proc/self/status")
    if not more or not status.exists():
        return
    now = next(int(line.split()[1]) * 1024 for line in status.read_text().splitlines() if line.startswith("VmData:"))
    resource.setrlimit(resource.RLIMIT_DATA, (now + more, resource.getrlimit(resource.RLIMIT_DATA)[1]))


def main(connection: Connection) -> None:
    """Answer messages until there are no more."""
    start: Start = connection.recv()
    logging.getLogger("moorage").setLevel(logging.CRITICAL)
    warnings.simplefilter("ignore")
    with Server(
        model_repository=start.repository, model_control_mode="explicit", backend_config=start.backend_config
    ) as server:
        try:
            child = Child(server, start)
        except MoorageError as error:
            connection.send(Finding(Outcome.UNCLEAR, "load", str(error)))
            return
        connection.send(Finding(Outcome.ANSWERED))
        limit_memory(start.memory)
        with suppress(EOFError):
            while True:
                message = connection.recv()
                connection.send(child.try_model(message) if isinstance(message, Trial) else child.try_harm(message))


if __name__ == "__main__":
    main(Connection(int(sys.argv[1])))
    sys.stdout.flush()
    os._exit(0)  # frameworks may take long to say goodbye, and nobody listens
