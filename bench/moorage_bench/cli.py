"""The command line of the benchmarks."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from moorage_bench.install import MissingPeerError, bench_home
from moorage_bench.load import LoadError
from moorage_bench.plan import Plan
from moorage_bench.report import Report
from moorage_bench.sets import SETS

_RESULTS = Path(__file__).parent.parent / "results"
_INTERRUPTED = 130


def main(words: Sequence[str] | None = None) -> int:
    """Run the chosen sets, print the table, write the JSON. Returns 1 if `--strict` and an aim was missed or a set failed."""
    parser = _parser()
    arguments = parser.parse_args(words)
    unknown = [name for name in arguments.sets if name not in SETS]
    if unknown:
        parser.error(f"no set {', '.join(unknown)}; there are {', '.join(SETS)}")
    for number in (signal.SIGINT, signal.SIGTERM):  # a shell may have started us with the first one ignored
        signal.signal(number, _as_interrupt)
    plan = Plan(
        workspace=bench_home() / "work",
        rounds=arguments.rounds,
        seconds=arguments.seconds,
        patience_s=arguments.patience,
        models=arguments.models,
        cycles=arguments.cycles,
        with_thread=arguments.with_thread,
    )
    report = Report(settings={"rounds": plan.rounds, "seconds": plan.seconds, "sets": arguments.sets})
    try:
        run(arguments.sets or list(SETS), plan, report)
    except KeyboardInterrupt:
        print("interrupted; what was measured until now:", file=sys.stderr)
        _show(report, arguments.results)
        return _INTERRUPTED
    _show(report, arguments.results)
    return int(arguments.strict and bool(report.missed() or report.skipped))


def run(names: Sequence[str], plan: Plan, report: Report) -> None:
    """Measure the sets one after the other; one that cannot be measured is noted and the rest goes on."""
    for name in names:
        plan.progress(f"{name}:")
        try:
            report.points[name] = tuple(SETS[name](plan))
        except (MissingPeerError, LoadError) as error:
            plan.progress(f"  {error}")
            report.skipped[name] = str(error)


def _show(report: Report, folder: Path) -> None:
    print(report.table())
    print(f"written to {report.write(folder)}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bench/run.py", description="Ratios of moorage to raw runtimes and other servers.")
    parser.add_argument("sets", nargs="*", metavar="SET", help=f"what to measure (default: all): {', '.join(SETS)}")
    parser.add_argument("--rounds", type=int, default=5, help="readings of each side (default: 5)")
    parser.add_argument("--seconds", type=float, default=3.0, help="length of a reading (default: 3)")
    parser.add_argument(
        "--patience", type=float, default=0.0, help="seconds that a round may wait for a quiet moment (default: none)"
    )
    parser.add_argument("--models", type=int, default=10_000, help="size of the repository that is scanned (default: 10000)")
    parser.add_argument("--cycles", type=int, default=200, help="loads and unloads of a model (default: 200)")
    parser.add_argument("--with-thread", action="store_true", help="also measure Python models in threads of the server")
    parser.add_argument("--strict", action="store_true", help="exit with 1 if an aim is missed or a set is not measured")
    parser.add_argument("--results", type=Path, default=_RESULTS, help="folder for the JSON (default: bench/results)")
    return parser


def _as_interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
