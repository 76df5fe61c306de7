"""Samples moorage under load and prints where the time goes: `python bench/profile_server.py http-16`."""

from __future__ import annotations

import argparse

from moorage_bench.install import bench_home
from moorage_bench.plan import Plan
from moorage_bench.profiling import LOADS, profile


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("load", choices=list(LOADS))
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument(
        "--isolation", default="", help="where the Python model runs: process or thread (default: as the server does)"
    )
    parser.add_argument("--native", action="store_true", help="see into compiled code, too (stops the server for each sample)")
    parser.add_argument(
        "--waits", action="store_true", help="sample threads without the interpreter lock, too: system calls and waits"
    )
    parser.add_argument("--lines", type=int, default=25)
    arguments = parser.parse_args()
    plan = Plan(bench_home() / "work", seconds=arguments.seconds)
    rate, profiles = profile(
        plan, arguments.load, isolation=arguments.isolation, native=arguments.native, waits=arguments.waits
    )
    print(f"{arguments.load}: {rate:.0f} requests/s while sampled")
    for name, found in sorted(profiles.items(), key=lambda item: -item[1].samples):
        print(f"{name}: {found.samples} samples\n{found.table(arguments.lines)}")


if __name__ == "__main__":
    main()
