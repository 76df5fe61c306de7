"""Makes .venv and installs into it what a make target needs. Needs nothing but Python 3.11 or newer.

    python3 scripts/environment.py serve    the core and the plugins of the demo
    python3 scripts/environment.py client   what examples/classify_digits.py needs
    python3 scripts/environment.py test     everything

A target that is installed already, from the same project files, takes no time.
"""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

if sys.version_info < (3, 11):  # noqa: UP036 (this is where it is found out)
    sys.exit(f"moorage needs Python 3.11 or newer; this is {sys.version.split()[0]}. Name another: make PYTHON=python3.12 ...")

import tomllib

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
GROUPS = {"serve": (), "client": ("demo-client",), "test": ("test", "demo-client")}
DEMO_PLUGINS = ("plugins/onnx", "plugins/python")
EXTRAS = {"plugins/onnx": "[cpu]", "plugins/tensorflow": "[cpu]"}  # a choice that the plugin leaves open


def say(text: str) -> None:
    print(f"-- {text}", flush=True)


def packages(target: str) -> list[str]:
    """The project's own packages that the target needs, the core first."""
    found = sorted(str(file.parent.relative_to(ROOT)) for file in (ROOT / "plugins").rglob("pyproject.toml"))
    return ["core", *(found if target == "test" else [one for one in found if one in DEMO_PLUGINS])]


def requirements(target: str) -> list[str]:
    """What the target needs beside the project's own packages: the groups of pyproject.toml."""
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]
    return sorted({one for group in GROUPS[target] for one in groups[group]})


def fingerprint(target: str) -> str:
    files = [ROOT / "pyproject.toml", Path(__file__), *(ROOT / one / "pyproject.toml" for one in packages(target))]
    place = f"{sys.version} {ROOT}"  # programs in .venv name their Python by its whole path
    return hashlib.sha256(b"".join(file.read_bytes() for file in files) + place.encode()).hexdigest()


def make_venv() -> None:
    """Make .venv, also where an earlier attempt was broken off half-way."""
    if (
        PYTHON.exists()
        and subprocess.run([str(PYTHON), "-m", "pip", "--version"], check=False, capture_output=True).returncode == 0
    ):
        return
    say("making .venv")
    made = subprocess.run([sys.executable, "-m", "venv", "--clear", str(VENV)], check=False)
    if made.returncode != 0:
        sys.exit("could not make .venv: Python's venv module is missing (on Debian and Ubuntu: apt install python3-venv)")


def uv_environment() -> dict[str, str]:
    """What the environment tells pip, in the words of uv, which reads neither pip.conf nor PIP_*."""
    env = dict(os.environ)
    for pip_name, uv_name in (("PIP_INDEX_URL", "UV_DEFAULT_INDEX"), ("PIP_EXTRA_INDEX_URL", "UV_INDEX")):
        if os.environ.get(pip_name):
            env.setdefault(uv_name, os.environ[pip_name])
    wheels = os.environ.get("PIP_FIND_LINKS", "nowhere")
    if Path(wheels).is_dir():
        env.setdefault("UV_FIND_LINKS", wheels)
    if not any(Path(wheels).glob(f"torch-*-cp{sys.version_info.major}{sys.version_info.minor}-*")):
        env.setdefault("UV_TORCH_BACKEND", "cpu")  # else torch would bring CUDA along
    return env


def install(arguments: list[str]) -> None:
    """With uv where pip can bring it, else (or where uv cannot reach what pip can) with pip."""
    quiet = [str(PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    if subprocess.run([*quiet, "uv"], check=False, capture_output=True).returncode == 0:
        uv = [str(VENV / "bin" / "uv"), "pip", "install", "--quiet", "--python", str(PYTHON)]
        if subprocess.run([*uv, *arguments], env=uv_environment(), check=False).returncode == 0:
            return
        say("uv could not install it; trying pip, which is slower")
    if subprocess.run([*quiet, *arguments], check=False).returncode != 0:
        sys.exit("the packages could not be installed; pip's message is above")


def install_emulators() -> None:
    """What tests of stores run against, and pip cannot bring."""
    say("installing an emulator of Azure Blob Storage with npm (once; tests that need it are skipped without)")
    command = [str(PYTHON), "-m", "emulators.azure"]
    done = subprocess.run(command, cwd=ROOT / "tests", check=False, capture_output=True, text=True)
    if done.returncode != 0:
        say(f"it cannot be had: {done.stderr.strip()}")


def main() -> None:
    if len(sys.argv) != 2 or sys.argv[1] not in GROUPS:
        sys.exit(f"usage: {sys.argv[0]} {'|'.join(GROUPS)}")
    target = sys.argv[1]
    os.chdir(ROOT)
    stamp = VENV / f"installed-{target}"
    wanted = fingerprint(target)
    if stamp.exists() and stamp.read_text() == wanted:
        return
    make_venv()
    own, others = packages(target), requirements(target)
    say(f"installing {', '.join(own)}" + (f" and {len(others)} tools" if others else ""))
    install([argument for one in own for argument in ("-e", f"./{one}{EXTRAS.get(one, '')}")] + others)
    if target == "test":
        install_emulators()
    stamp.write_text(wanted)


if __name__ == "__main__":
    main()
