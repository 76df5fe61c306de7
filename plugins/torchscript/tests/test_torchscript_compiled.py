"""Packages of AOT Inductor. Compiling one takes a C++ compiler and a minute, so PyTorch's loader of packages is played here."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

from moorage.backend import LoadContext, Placement
from moorage.config import parse_text
from moorage.config.schema import InstanceKind
from moorage.errors import ConfigError, ModelError, RequestError
from moorage_torchscript.backend import TorchBackend
from moorage_torchscript.contents import Kind, identify

LEAF: dict[str, Any] = {"type": None, "context": None, "children_spec": []}
PAIR = {"type": "builtins.tuple", "context": "null", "children_spec": [LEAF, LEAF]}
NOTHING = {"type": "builtins.dict", "context": "[]", "children_spec": []}
CALL = json.dumps([1, {"type": "builtins.tuple", "context": "null", "children_spec": [PAIR, NOTHING]}])
RESULT = json.dumps([1, {"type": "builtins.dict", "context": '["TOTAL", "GAP"]', "children_spec": [LEAF, LEAF]}])
LEFT, RIGHT = np.array([1, 2], np.float32), np.array([10, 30], np.float32)


class PlayedLoader:
    """Adds and subtracts, as `torch._C._aoti.AOTIModelPackageLoader` would of a compiled `add_sub`."""

    device: ClassVar[str] = "cpu"
    paths: ClassVar[list[Path]] = []

    def __init__(self, path: str, name: str, single_threaded: bool, runners: int, device: int) -> None:
        self.paths.append(Path(path))
        if not zipfile.is_zipfile(path) or (name, runners) != ("model", 1):
            raise RuntimeError("no package")

    def get_call_spec(self) -> list[str]:
        return [CALL, RESULT]

    def get_metadata(self) -> dict[str, str]:
        return {"AOTI_DEVICE_KEY": self.device}

    def boxed_run(self, inputs: list[Any]) -> list[Any]:
        if inputs[0].shape != inputs[1].shape:
            raise RuntimeError("input_handles[1]: unmatched dim value at 0, expected: 2, but got: 3")
        total, gap = inputs[0] + inputs[1], inputs[0] - inputs[1]
        inputs[0].zero_()  # a compiled program may write into its inputs
        return [total, gap]


@pytest.fixture(autouse=True)
def played(monkeypatch: pytest.MonkeyPatch) -> type[PlayedLoader]:
    monkeypatch.setattr(torch._C._aoti, "AOTIModelPackageLoader", PlayedLoader)
    monkeypatch.setattr(PlayedLoader, "paths", [])
    return PlayedLoader


def package() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("add_sub/data/aotinductor/model/wrapper.so", b"machine code")
    return buffer.getvalue()


def tensors(field: str, *names: str) -> str:
    return f"{field} [ " + ", ".join(f'{{ name: "{name}" data_type: TYPE_FP32 dims: [ -1 ] }}' for name in names) + " ] "


@pytest.fixture
def load(tmp_path: Path) -> Callable[..., Any]:
    def load(text: str) -> Any:
        (tmp_path / "model.pt2").write_bytes(package())
        places: Sequence[Placement] = (Placement("m", InstanceKind.KIND_CPU),)
        config = parse_text(f'name: "m" {text}').config
        return TorchBackend().load(LoadContext("m", 1, config, tmp_path, tmp_path, "model.pt2", tuple(places)))

    return load


def test_a_package_is_told_by_its_parts() -> None:
    assert identify(package()).kind is Kind.COMPILED


@pytest.mark.parametrize("inputs", [("INPUT__0", "INPUT__1"), ("ARGS[0]", "ARGS[1]")])
@pytest.mark.parametrize("outputs", [("OUTPUT__0", "OUTPUT__1"), ("RESULT[TOTAL]", "RESULT[GAP]"), ("TOTAL", "GAP")])
def test_tensors_by_number_and_by_path(load: Callable[..., Any], place: Any, inputs: Any, outputs: Any) -> None:
    made = load(tensors("input", *inputs) + tensors("output", *outputs)).instance(place)
    left = np.frombuffer(LEFT.tobytes(), np.float32)
    found = made.run({inputs[0]: left, inputs[1]: RIGHT}, outputs)
    assert (found[outputs[0]].tolist(), found[outputs[1]].tolist()) == ([11, 32], [-9, -28])
    assert left.tolist() == [1, 2], "inputs are not written into"


def test_each_instance_has_a_loader_and_no_file_stays(load: Callable[..., Any], place: Any, played: type[PlayedLoader]) -> None:
    model = load(tensors("input", "INPUT__0", "INPUT__1") + tensors("output", "TOTAL"))
    for _ in range(3):
        model.instance(place)
    assert len(played.paths) == 3
    assert not any(path.exists() for path in played.paths)


def test_an_unknown_name_is_not_in_the_signature(load: Callable[..., Any]) -> None:
    found = load(tensors("input", "INPUT__0", "nothing") + tensors("output", "TOTAL")).signature()
    assert [spec.name for spec in found.inputs] == ["INPUT__0", "INPUT__1"]


def test_what_the_package_does_not_tell_must_be_written(load: Callable[..., Any]) -> None:
    with pytest.raises(ConfigError, match=r"model 'm': .*inputs are called INPUT__0, INPUT__1, its outputs TOTAL, GAP"):
        load("")


def test_sizes_that_do_not_fit_are_the_request_s_fault(load: Callable[..., Any], place: Any) -> None:
    made = load(tensors("input", "INPUT__0", "INPUT__1") + tensors("output", "TOTAL")).instance(place)
    with pytest.raises(RequestError, match=r"model 'm' cannot compute with these inputs: input_handles\[1\]: unmatched dim"):
        made.run({"INPUT__0": LEFT, "INPUT__1": np.ones(3, np.float32)}, ["TOTAL"])


def test_a_package_for_another_device_says_so(load: Callable[..., Any], place: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PlayedLoader, "device", "cuda")
    model = load(tensors("input", "INPUT__0", "INPUT__1") + tensors("output", "TOTAL"))
    with pytest.raises(
        ModelError, match="model 'm' was compiled for cuda, but instance_group places it on cpu; write kind: KIND_GPU"
    ):
        model.instance(place)


def test_compiled_programs_check_what_they_are_given(load: Callable[..., Any]) -> None:
    import os

    load(tensors("input", "INPUT__0", "INPUT__1") + tensors("output", "TOTAL"))
    assert os.environ["AOTI_RUNTIME_CHECK_INPUTS"] == "1"
