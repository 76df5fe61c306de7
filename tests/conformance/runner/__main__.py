"""Command line of the runner: verify, record or list cases.

With tests/ in PYTHONPATH: python -m conformance.runner verify tests/conformance/cases -k versions --command 'moorage serve …'
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from conformance.runner.case import Case, label, read_cases
from conformance.runner.compare import short
from conformance.runner.differences import apply, read_differences
from conformance.runner.play import Outcome, play
from conformance.runner.ports import FIRST, LAST, Ports
from conformance.runner.process import Settings
from conformance.runner.record import write_back


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mode", choices=["record", "verify", "list"])
    parser.add_argument("paths", nargs="+", type=Path, help="case files, or folders of them")
    parser.add_argument("--command", default=os.environ.get("ORACLE_COMMAND"), help="template that starts the server")
    parser.add_argument("--differences", type=Path, help="apply this file over the recordings")
    parser.add_argument("-k", default="", help="only cases whose file, area or name contains this (comma: any of)")
    parser.add_argument("-j", type=int, default=1, help="cases at the same time")
    parser.add_argument("--base-port", type=int, default=FIRST)
    parser.add_argument("--start-timeout", type=float, default=60)
    parser.add_argument("--stop-timeout", type=float, default=6)
    parser.add_argument("--any-error-status", action="store_true", help="take any error status for another")
    parser.add_argument("--report", type=Path, help="write a JSON report here")
    parser.add_argument("--keep", action="store_true", help="keep each case's folder (repository, server log)")
    parser.add_argument("--missing", action="store_true", help="record: only cases with nothing recorded yet")
    parser.add_argument("--workdir", type=Path, help="where the cases' folders are made")
    parser.add_argument("-v", "--verbose", action="store_true", help="show what every step observed")
    return parser


def _chosen(options: argparse.Namespace) -> list[Case]:
    cases = read_cases(options.paths)
    if options.differences:
        cases = apply(read_differences(options.differences), cases)
    words = options.k.split(",")
    found = [case for case in cases if any(word in f"{case.file} {case.full_name}" for word in words)]
    return [case for case in found if not (options.missing and case.data.get("recorded"))]


def _show(outcome: Outcome, verbose: bool) -> None:
    state = "PASS" if outcome.passed else "FAIL"
    print(f"{state} {outcome.case.full_name} ({outcome.seconds:.1f}s) {outcome.problem}".rstrip(), flush=True)
    for step, seen in outcome.trail if verbose else ():
        print(f"    {label(step)} -> {short(seen, 700)}", flush=True)
    if verbose and outcome.problem.startswith("server:"):
        print(outcome.log, flush=True)


def _run(options: argparse.Namespace, cases: list[Case], workdir: Path) -> list[Outcome]:
    settings = Settings(
        command=options.command,
        workdir=workdir,
        start_timeout=options.start_timeout,
        stop_timeout=options.stop_timeout,
        keep=options.keep,
        any_error_status=options.any_error_status,
        verbose=options.verbose,
    )
    ports = Ports(range(options.base_port, LAST))

    def one(case: Case) -> Outcome:
        outcome = play(case, settings, ports, record=options.mode == "record")
        _show(outcome, options.verbose)
        return outcome

    with ThreadPoolExecutor(options.j) as pool:
        return list(pool.map(one, cases))


def _report(outcomes: list[Outcome]) -> str:
    cases = [
        {"case": one.case.full_name, "ok": one.passed, "message": one.problem, "seconds": round(one.seconds, 2)}
        for one in outcomes
    ]
    return json.dumps({"passed": sum(one.passed for one in outcomes), "cases": cases}, indent=1)


def main() -> int:
    parser = _parser()
    options = parser.parse_args()
    cases = _chosen(options)
    if options.mode == "list":
        for case in cases:
            print(f"{case.full_name}  ({len(case.steps)} steps)  {case.data['why']}")
        return 0
    if not options.command:
        parser.error("--command is needed (or ORACLE_COMMAND)")
    if options.mode == "record" and options.differences:
        parser.error("a recording is made without differences")
    workdir = options.workdir or Path(tempfile.mkdtemp(prefix="conformance-"))
    workdir.mkdir(parents=True, exist_ok=True)
    outcomes = _run(options, cases, workdir)
    if options.mode == "record":
        passed = [outcome.case for outcome in outcomes if outcome.passed]
        for case in passed:
            case.data["recorded"] = True
        write_back(passed)
    if not options.keep:
        shutil.rmtree(workdir, ignore_errors=True)
    if options.report:
        options.report.write_text(_report(outcomes), encoding="utf-8")
    failed = sum(not outcome.passed for outcome in outcomes)
    print(f"{len(outcomes) - failed} passed, {failed} failed")
    return 1 if failed or not outcomes else 0


if __name__ == "__main__":
    sys.exit(main())
