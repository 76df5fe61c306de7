"""The load generators: where they come from and how they are called."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from attrs import field, frozen

from moorage_bench.install import MissingPeerError, debian_packages, venv, wheel


@frozen
class Tool:
    """A program: the words that start it, and the environment it needs besides the present one."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(factory=dict)

    def environment(self) -> dict[str, str]:
        return {**os.environ, **self.env}


def wrk() -> Tool:
    """The HTTP load generator `wrk`: the machine's own, else Debian's package."""
    own = shutil.which("wrk")
    if own:
        return Tool((own,))
    root = debian_packages("wrk", ["wrk", "libluajit-5.1-2", "libluajit-5.1-common"])
    libraries = root / "usr/lib" / f"{platform.machine()}-linux-gnu"
    return Tool((str(root / "usr/bin/wrk"),), {"LD_LIBRARY_PATH": str(libraries)})


def perf_analyzer() -> Tool:
    """Triton's own load generator, from its wheel.

    The wheel is linked against glibc 2.38. Where the machine's is older, the program runs with the C library of Debian 13,
    fetched into the benchmarks' folder; nothing of the machine is changed.
    """
    if platform.machine() != "x86_64":
        raise MissingPeerError("perf_analyzer: its wheel is for x86_64 only")
    program = wheel("perf_analyzer", "perf-analyzer", "manylinux_2_38_x86_64") / "perf_analyzer/bin/perf_analyzer"
    program.chmod(0o755)
    if _glibc() >= (2, 38):
        return Tool((str(program),))
    root = debian_packages("libc", ["libc6", "libgcc-s1", "libstdc++6", "zlib1g", "libssl3t64"], suite="trixie")
    libraries = root / "usr/lib/x86_64-linux-gnu"
    loader = str(libraries / "ld-linux-x86-64.so.2")
    return Tool((loader, "--library-path", str(libraries), str(program)))


def allocators() -> dict[str, Path]:
    """Other allocators of memory, from Debian's packages: name -> library to preload."""
    root = debian_packages("allocators", ["libjemalloc2", "libtcmalloc-minimal4"])
    libraries = root / "usr/lib" / f"{platform.machine()}-linux-gnu"
    return {"jemalloc": libraries / "libjemalloc.so.2", "tcmalloc": libraries / "libtcmalloc_minimal.so.4"}


def s3_clients() -> dict[str, Path]:
    """Other clients of S3, in an environment of their own: name -> the Python that has it."""
    python = venv("s3", ["awscli", "boto3"])
    return {"aws": python, "boto3": python}


def py_spy() -> Tool:
    """The sampling profiler, in an environment of its own."""
    return Tool((str(venv("py-spy", ["py-spy"]).parent / "py-spy"),))


def _glibc() -> tuple[int, ...]:
    name, version = platform.libc_ver(sys.executable)
    return tuple(int(part) for part in version.split(".")) if name == "glibc" else ()
