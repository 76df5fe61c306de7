"""Tries broken models in a child process, so that a crash or a hang is a finding like any other."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, suppress
from multiprocessing import Pipe
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import orjson
from attrs import evolve, frozen

from moorage.config import to_json
from moorage.config.schema import ModelConfig
from moorage.testing.corruption.harms import HARMS
from moorage.testing.corruption.messages import Finding, Harm, Start, Trial
from moorage.testing.corruption.mutants import Mutant
from moorage.testing.corruption.verdicts import Outcome, Report, Verdict
from moorage.testing.model_case import Files, ModelCase

MOST_DEATHS = 10
"""Processes that may be lost to mutants until the rest are given up."""
_TAIL = 1500
_FATAL = "Fatal Python error"
Named = tuple[str, Trial | Harm]
"""What is tried, and what it is called in the report."""
_ENDS = frozenset({Outcome.CRASHED, Outcome.HUNG, Outcome.HARMED})
_KEPT_OPEN = ("name", "platform", "backend", "default_model_filename", "instance_group", "parameters")
_INTACT = "intact"


@frozen
class Limits:
    """What a mutant may take: seconds to load and answer, MiB of memory above what the intact model takes."""

    seconds: float = 20
    start_seconds: float = 120
    memory_mib: int = 4096


_LIMITS = Limits()


def run_mutants(
    case: ModelCase, backend: str, mutants: Iterable[Mutant], *, open_config: bool = False, limits: Limits = _LIMITS
) -> Report:
    """Load and run every mutant in a real server, all in one child process, which is replaced where a mutant ends it.

    The server is asked as a client asks it: a load with files of the request, an inference, an unload. `open_config` leaves
    inputs and outputs out of the configuration of every second mutant, so that they are completed from the broken file.
    Raises RuntimeError if the case itself does not answer.
    """
    inputs = case.sample(np.random.default_rng(0))
    trials: list[Named] = []
    for index, mutant in enumerate(mutants):
        model = f"mutant_{index}"
        config = _json(case.configured(backend), model, open_config=open_config and index % 2 == 1)
        trials.append((mutant.name, Trial(model, config, _version_1(mutant.files), inputs)))
    with tempfile.TemporaryDirectory(prefix="moorage-mutants-") as folder:
        return _run(_start(case, backend, folder, limits), trials, limits)


def run_harms(case: ModelCase, backend: str, *, limits: Limits = _LIMITS) -> Report:
    """Harm the files of loaded models in each of the ways of `HARMS`, and see whether they answer as before.

    Raises RuntimeError if the case itself does not answer.
    """
    inputs = case.sample(np.random.default_rng(0))
    with tempfile.TemporaryDirectory(prefix="moorage-harms-") as folder:
        trials: list[Named] = []
        for how in HARMS:
            place = case.put(Path(folder), case.configured(backend), name=f"files_{how}")
            trials.append((f"files {how} under the loaded model", Harm(place.parent.name, str(place), how, inputs)))
        return _run(_start(case, backend, folder, limits), trials, limits)


def _start(case: ModelCase, backend: str, folder: str, limits: Limits) -> Start:
    return Start(
        repository=folder,
        intact=_INTACT,
        config=_json(case.configured(backend), _INTACT),
        files=_version_1(case.files()),
        inputs=case.sample(np.random.default_rng(1)),
        backend_config=[f"{backend},{name}={value}" for name, value in case.backend_config.items()],
        memory=limits.memory_mib * 2**20,
    )


def _version_1(files: Files) -> Files:
    return {f"1/{path}": content for path, content in files.items()}


def _json(config: ModelConfig, name: str, *, open_config: bool = False) -> str:
    fields = to_json(evolve(config, name=name))
    if open_config:
        fields = {key: fields[key] for key in _KEPT_OPEN if fields.get(key)}
    return orjson.dumps(fields).decode()


def _run(start: Start, waiting: list[Named], limits: Limits) -> Report:
    verdicts: list[Verdict] = []
    deaths = 0
    while waiting and deaths < MOST_DEATHS:
        with Process(start, limits) as process:
            waiting = process.work(waiting, verdicts)
        deaths += bool(waiting)
    verdicts += [Verdict(name, Outcome.CRASHED, "", "given up after too many processes were lost") for name, _ in waiting]
    return Report(verdicts)


class Process:
    """A child process with a server. Raises RuntimeError if that cannot serve the intact model."""

    def __init__(self, start: Start, limits: Limits) -> None:
        self._limits = limits
        self._cleanup = ExitStack()
        self._log = tempfile.TemporaryFile("w+b", prefix="moorage-")  # noqa: SIM115 - closed with the rest
        self._connection, theirs = Pipe()
        self._cleanup.callback(self._log.close)
        self._cleanup.callback(self._connection.close)
        command = [sys.executable, "-X", "faulthandler", "-m", "moorage.testing.corruption.child", str(theirs.fileno())]
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603 - this very interpreter
                command, stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log, pass_fds=[theirs.fileno()]
            )
        self._greet(start)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._end()

    def work(self, waiting: Sequence[Named], verdicts: list[Verdict]) -> list[Named]:
        """Try them in turn; what is left when the process does not live any more."""
        for index, (name, trial) in enumerate(waiting):
            finding = self._ask(trial, self._limits.seconds)
            verdicts.append(Verdict(name, finding.outcome, finding.stage, finding.message))
            if finding.outcome in _ENDS:
                return list(waiting[index + 1 :])
        return []

    def _greet(self, start: Start) -> None:
        finding = self._ask(start, self._limits.start_seconds)
        if finding.outcome is not Outcome.ANSWERED:
            self._end()
            raise RuntimeError(
                f"the model itself, with nothing broken, {finding.outcome.value}: {finding.message}; is the plugin installed "
                "in this environment, and does the ModelCase hold all files and a complete configuration?"
            )

    def _ask(self, message: Any, seconds: float) -> Finding:
        try:
            self._connection.send(message)
            if not self._connection.poll(seconds):
                return Finding(Outcome.HUNG, "", f"after {seconds:g} seconds, it was doing: {self._interrupted()}")
            finding: Finding = self._connection.recv()
        except (EOFError, OSError):
            code = self._process.wait()
            end = f"signal {-code}" if code < 0 else f"exit code {code}"
            return Finding(Outcome.CRASHED, "", f"{end}; it wrote last: {self._said()}")
        return finding

    def _interrupted(self) -> str:
        """End a process that hangs; where its threads were."""
        self._process.send_signal(signal.SIGABRT)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(5)
        self._process.kill()
        self._process.wait()
        return self._said()

    def _said(self) -> str:
        size = os.fstat(self._log.fileno()).st_size
        text = os.pread(self._log.fileno(), size, 0).decode(errors="replace").strip()  # its offset is shared with the process
        before, fatal, after = text.rpartition(_FATAL)
        return before[-_TAIL:] + fatal + after[:_TAIL] if fatal else text[-_TAIL:] or "nothing"

    def _end(self) -> None:
        self._cleanup.close()  # closing the connection ends the process
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
