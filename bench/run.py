"""Measures moorage beside raw runtimes and other servers: `python bench/run.py [SET ...]`."""

from __future__ import annotations

from moorage_bench.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
