"""What the built packages hold, and that each installs by itself."""

from __future__ import annotations

import email
import shutil
import sys
import zipfile
from pathlib import Path

import pytest

from conformance.runner.ports import Ports, share
from conformance.suite import worker_number
from layers.sources import ROOT, distributions
from packages.checkout import clean_environment, clone_to, run, serving

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(1000)]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The wheels of all distributions, by the name of their folder, built from a clean copy."""
    folder = tmp_path_factory.mktemp("wheels")
    checkout = clone_to(folder / "checkout")
    found = {}
    for distribution in distributions():
        target = folder / distribution.name
        source = checkout / distribution.relative_to(ROOT)
        run([sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(target), str(source)], ROOT)
        found[distribution.name] = next(target.glob("*.whl"))
    return found


@pytest.fixture(scope="module")
def wheels(built: dict[str, Path]) -> dict[str, zipfile.ZipFile]:
    return {name: zipfile.ZipFile(wheel) for name, wheel in built.items()}


@pytest.mark.parametrize("distribution", distributions(), ids=lambda path: path.name)
def test_a_wheel_holds_all_files_of_its_package(distribution: Path, wheels: dict[str, zipfile.ZipFile]) -> None:
    held = set(wheels[distribution.name].namelist())
    package = next(one for one in (distribution / "src").iterdir() if (one / "__init__.py").exists())
    files = [file.relative_to(distribution / "src") for file in package.rglob("*") if file.is_file()]
    missing = {str(file) for file in files if "__pycache__" not in file.parts} - held
    assert not missing
    assert f"{package.name}/py.typed" in held
    assert not [name for name in held if "tests/" in name or "__pycache__" in name or "conftest" in name]


def test_the_core_wheel_holds_the_schema(wheels: dict[str, zipfile.ZipFile]) -> None:
    held = wheels["core"].namelist()
    assert any(name.endswith(".binpb") for name in held), "the compiled protocol messages"
    assert any(name.endswith(".proto") for name in held)


@pytest.mark.parametrize("distribution", distributions(), ids=lambda path: path.name)
def test_a_wheel_describes_itself(distribution: Path, wheels: dict[str, zipfile.ZipFile]) -> None:
    wheel = wheels[distribution.name]
    metadata = email.message_from_bytes(wheel.read(next(n for n in wheel.namelist() if n.endswith(".dist-info/METADATA"))))
    assert metadata["License-Expression"] == "Apache-2.0"
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in wheel.namelist())
    assert metadata["Requires-Python"] == ">=3.11"
    assert not [one for one in metadata.get_all("Requires-Dist", []) if "file:" in one], "no paths of a machine"


def test_wheels_install_and_serve_without_the_checkout(built: dict[str, Path], tmp_path: Path) -> None:
    """As from an index: the core alone first, then its extras; then asked by the official client."""
    run([sys.executable, "-m", "venv", str(tmp_path / "venv")], tmp_path)
    installed = tmp_path / "venv" / "bin"
    install = [str(installed / "python"), "-m", "pip", "install", "--quiet"]
    install += [f"--find-links={wheel.parent}" for wheel in built.values()]
    run([*install, "moorage"], tmp_path)
    assert "onnx" not in run([str(installed / "moorage"), "plugins"], tmp_path)
    run([*install, "moorage[onnx,python]"], tmp_path)
    shutil.copytree(ROOT / "examples" / "repository", tmp_path / "models")
    http, grpc, metrics = Ports(share(worker_number())).take()
    flags = [f"--http-port={http}", f"--grpc-port={grpc}", f"--metrics-port={metrics}"]
    command = [str(installed / "moorage"), "serve", "--model-repository=models", *flags]
    with serving(command, http, cwd=tmp_path, env=clean_environment(PYTHONWARNINGS="error"), log=tmp_path / "server.log"):
        shown = run([sys.executable, str(ROOT / "examples" / "classify_digits.py"), "--http", f"127.0.0.1:{http}"], tmp_path)
    assert "accuracy 0.9" in shown
