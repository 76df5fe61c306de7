"""Where moorage spends its time under load: samples of py-spy, summed up by line and by function."""

from __future__ import annotations

import re
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

from attrs import define, field

from moorage_bench import load, requests, tools
from moorage_bench.load import LoadError
from moorage_bench.models import IDENTITY, identity_repository, simple_repository
from moorage_bench.plan import Plan
from moorage_bench.servers import Running, serving
from moorage_bench.sets.identity import COLUMNS

_RATE = 250
_SETTLE_S = 1.0
_FRAME = re.compile(r"(?P<function>[^;]+) \((?P<place>[^;()]+:\d+)\)")

Loads = Mapping[str, Callable[[Plan, Running, float], float]]


def _wrk(connections: int) -> Callable[[Plan, Running, float], float]:
    def drive(plan: Plan, server: Running, seconds: float) -> float:
        script = plan.folder("scripts") / "profile.lua"
        return load.wrk(plan.tools.wrk(), server, requests.identity_binary(COLUMNS), script, connections, seconds)

    return drive


def _large(_plan: Plan, server: Running, seconds: float) -> float:
    return load.one_connection(server, requests.identity_binary(4 << 20), seconds)


def _grpc(connections: int) -> Callable[[Plan, Running, float], float]:
    def drive(plan: Plan, server: Running, seconds: float) -> float:
        return load.perf_analyzer(plan.tools.perf_analyzer(), server, IDENTITY, COLUMNS, connections, seconds)

    return drive


def _json(plan: Plan, server: Running, seconds: float) -> float:
    script = plan.folder("scripts") / "profile.lua"
    return load.wrk(plan.tools.wrk(), server, requests.simple_json(), script, 16, seconds)


JSON = "json-16"
LOADS: Loads = {
    "http-1": _wrk(1),
    "http-16": _wrk(16),
    "http-large": _large,
    "grpc-1": _grpc(1),
    "grpc-16": _grpc(16),
    JSON: _json,
}
"""Ways to load the server while it is looked at; JSON goes to the ONNX model, the others to the Python one."""


@define
class Profile:
    """Samples of one process. `own` counts the innermost line, `within` each function that a sample passed through."""

    own: Counter[str] = field(factory=Counter)
    within: Counter[str] = field(factory=Counter)
    samples: int = 0

    def add(self, frames: list[tuple[str, str]], count: int) -> None:
        """Add a stack, outermost frame first, each frame as (function, file:line)."""
        function, place = frames[-1]
        self.own[f"{place} {function}"] += count
        self.within.update(dict.fromkeys({f"{p.rpartition(':')[0]} {f}" for f, p in frames}, count))
        self.samples += count

    def table(self, lines: int) -> str:
        """The most frequent lines and functions, in percent of the thread's samples, without what all samples pass through."""
        within = Counter({name: count for name, count in self.within.items() if count < 0.9 * self.samples})
        rows: list[str] = []
        for title, counts in (("own time, by line", self.own), ("time within, by function", within)):
            rows.append(f"  {title}:")
            rows += [f"    {100 * count / self.samples:5.1f} %  {name}" for name, count in counts.most_common(lines)]
        return "\n".join(rows)


def profile(
    plan: Plan, name: str, *, isolation: str = "", native: bool = False, waits: bool = False
) -> tuple[float, dict[str, Profile]]:
    """Load moorage in one of the ways of `LOADS` and sample it. Returns requests per second, and a profile for each thread.

    Only threads that hold the interpreter lock are sampled, unless `waits` or `native` asks for all that are busy.
    """
    if name == JSON:
        repository = simple_repository(plan.folder("profile-simple"))
    else:
        parameters = {"isolation": isolation} if isolation else {}
        repository = identity_repository(plan.folder(f"profile-{isolation or 'default'}"), parameters)
    output = plan.folder("profiles") / f"{name}.txt"
    with serving([plan.sides.moorage(repository)], plan.folder("logs")) as servers:
        (server,) = servers.values()
        sampler = threading.Timer(_SETTLE_S, _record, (server, output, plan.seconds, native, waits))
        sampler.start()
        rate = LOADS[name](plan, server, plan.seconds + 2 * _SETTLE_S)
        sampler.join()
    if not output.exists():
        raise LoadError("py-spy wrote nothing; it needs the right to look at other processes (root, or ptrace_scope 0)")
    return rate, parse(output.read_text())


def _record(server: Running, output: Path, seconds: float, native: bool, waits: bool) -> None:
    output.unlink(missing_ok=True)
    words = ["record", "--pid", str(server.pid), "--subprocesses", "--threads", "--format", "raw", "--full-filenames"]
    words += ["--rate", str(_RATE), "--duration", str(max(1, round(seconds))), "--output", str(output)]
    words += ["--native"] if native else ["--nonblocking"]
    words += [] if waits or native else ["--gil"]
    subprocess.run([*tools.py_spy().argv, *words], capture_output=True, check=False)


def parse(raw: str) -> dict[str, Profile]:
    """Profiles from py-spy's raw format, by process and thread."""
    profiles: dict[str, Profile] = {}
    for line in raw.splitlines():
        stack, _, count = line.rpartition(" ")
        frames = [(found["function"], found["place"]) for part in stack.split(";") if (found := _FRAME.fullmatch(part))]
        if frames:
            owners = re.findall(r'process \d+|thread [^;"]*', stack)
            profiles.setdefault(", ".join(owners) or "server", Profile()).add(frames, int(count))
    return profiles
