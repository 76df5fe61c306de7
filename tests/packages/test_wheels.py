"""What the built packages hold, and that each installs by itself."""

from __future__ import annotations

import email
import sys
import zipfile
from pathlib import Path

import pytest

from layers.sources import ROOT, distributions
from packages.checkout import clone_to, run

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(1000)]


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, zipfile.ZipFile]:
    """The wheels of all distributions, by the name of their folder, built from a clean copy."""
    folder = tmp_path_factory.mktemp("wheels")
    checkout = clone_to(folder / "checkout")
    found = {}
    for distribution in distributions():
        target = folder / distribution.name
        source = checkout / distribution.relative_to(ROOT)
        run([sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(target), str(source)], ROOT)
        found[distribution.name] = zipfile.ZipFile(next(target.glob("*.whl")))
    return found


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


def test_the_core_installs_without_any_plugin(tmp_path: Path) -> None:
    checkout = clone_to(tmp_path / "checkout")
    run([sys.executable, "-m", "venv", str(tmp_path / "venv")], tmp_path)
    python = str(tmp_path / "venv" / "bin" / "python")
    run([python, "-m", "pip", "install", "--quiet", str(checkout / "core")], tmp_path)
    assert "serve" in run([str(tmp_path / "venv" / "bin" / "moorage"), "--help"], tmp_path)
    assert "moorage-onnx" not in run([python, "-m", "pip", "list"], tmp_path)
