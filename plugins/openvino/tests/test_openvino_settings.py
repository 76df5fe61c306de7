from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from moorage.backend import LoadContext, Placement, VersionFiles
from moorage.config.schema import InstanceKind, ModelConfig, Parameter
from moorage.errors import ConfigError, ModelError, PluginError
from moorage_openvino.backend import OpenVinoBackend
from moorage_openvino.compiling import _properties
from moorage_openvino.plugin import backends, discover_model, select_model_file
from moorage_openvino.settings import read_settings

ON_CPU = Placement("m", InstanceKind.KIND_CPU)


class FakeCore:
    """Knows as many properties as it is given."""

    def __init__(self, **access: str) -> None:
        self._access = access

    def get_property(self, device: str, name: str) -> dict[str, str]:
        return self._access


def context(instances: int = 1, backend_config: Any = None, **parameters: str) -> LoadContext:
    config = ModelConfig(name="m", parameters={name: Parameter(text) for name, text in parameters.items()})
    return LoadContext("m", 1, config, Path(), Path(), "model.xml", (ON_CPU,) * instances, backend_config or {})


def properties(core: Any = None, **settings: Any) -> dict[str, str]:
    made = context(**settings)
    return _properties(core or FakeCore(NUM_STREAMS="RW"), made, read_settings(made))


def test_defaults_suit_a_server() -> None:
    assert properties(instances=3) == {"INFERENCE_PRECISION_HINT": "f32", "ENABLE_CPU_PINNING": "NO", "NUM_STREAMS": "3"}


def test_parameters_by_their_names() -> None:
    found = properties(NUM_STREAMS="auto", INFERENCE_NUM_THREADS="2", PERFORMANCE_HINT="latency", HINT_BF16="Yes")
    assert found == {
        "INFERENCE_PRECISION_HINT": "bf16",
        "ENABLE_CPU_PINNING": "NO",
        "NUM_STREAMS": "AUTO",
        "INFERENCE_NUM_THREADS": "2",
        "PERFORMANCE_HINT": "LATENCY",
    }


def test_a_performance_hint_decides_the_streams() -> None:
    assert "NUM_STREAMS" not in properties(PERFORMANCE_HINT="THROUGHPUT", instances=2)


def test_the_model_s_own_parameter_beats_the_command_line() -> None:
    command_line = {"NUM_STREAMS": "5", "INFERENCE_NUM_THREADS": "4", "version": "9"}
    found = properties(backend_config=command_line, NUM_STREAMS="1")
    assert (found["NUM_STREAMS"], found["INFERENCE_NUM_THREADS"]) == ("1", "4")


def test_other_writable_properties_of_the_device_are_passed_on() -> None:
    core = FakeCore(ENABLE_CPU_PINNING="RW", ENABLE_MMAP="RW", FULL_DEVICE_NAME="RO")
    found = properties(core, ENABLE_CPU_PINNING="YES", ENABLE_MMAP="YES", FULL_DEVICE_NAME="x", ANYTHING="else")
    assert found == {"INFERENCE_PRECISION_HINT": "f32", "ENABLE_CPU_PINNING": "YES", "NUM_STREAMS": "1"}


def test_another_device_keeps_its_own_defaults() -> None:
    assert properties(TARGET_DEVICE="gpu") == {"INFERENCE_PRECISION_HINT": "f32"}
    assert properties(TARGET_DEVICE="NPU", NUM_STREAMS="2") == {"NUM_STREAMS": "2"}


def test_a_property_that_the_device_lacks_is_told_of(caplog: pytest.LogCaptureFixture) -> None:
    assert "COMPILATION_NUM_THREADS" not in properties(COMPILATION_NUM_THREADS="2")
    assert "model 'm': COMPILATION_NUM_THREADS has no effect on the device CPU" in caplog.text
    assert properties(FakeCore(COMPILATION_NUM_THREADS="RW"), COMPILATION_NUM_THREADS="2")["COMPILATION_NUM_THREADS"] == "2"


@pytest.mark.parametrize(
    "name, meant",
    [("NUM_STREEMS", "NUM_STREAMS"), ("num_streams", "NUM_STREAMS"), ("RESHAPE_IO_LAYER", "RESHAPE_IO_LAYERS")],
)
def test_a_slip_in_a_name_is_told_of(caplog: pytest.LogCaptureFixture, name: str, meant: str) -> None:
    assert name not in properties(**{name: "2"})
    assert f"model 'm': parameter {name} does nothing; did you mean {meant}?" in caplog.text


def test_parameters_of_others_are_not_told_of(caplog: pytest.LogCaptureFixture) -> None:
    properties(CACHE_DIR="x", NUM_STREAMS="2", tokenizer="bpe", RESHAPE_IO_LAYERS="YES")
    assert "does nothing" not in caplog.text


@pytest.mark.parametrize(
    "name, text, told",
    [
        ("INFERENCE_NUM_THREADS", "-1", "'-1' is not a whole number from 0 up"),
        ("COMPILATION_NUM_THREADS", "many", "'many' is not a whole number from 0 up"),
        ("NUM_STREAMS", "few", "'few' is not AUTO, NUMA or a number"),
        ("PERFORMANCE_HINT", "FAST", "'FAST' is not one of LATENCY, THROUGHPUT, CUMULATIVE_THROUGHPUT"),
        ("HINT_BF16", "maybe", "'maybe' is not one of YES, NO"),
        ("INFERENCE_PRECISION_HINT", "int8", "'int8' is not one of F32, BF16, F16, DYNAMIC"),
        ("RESHAPE_IO_LAYERS", "often", "'often' is not true or false"),
    ],
)
def test_a_wrong_parameter_is_a_config_error(name: str, text: str, told: str) -> None:
    with pytest.raises(ConfigError, match=rf"model 'm': parameters\.{name}: {told}"):
        read_settings(context(**{name: text}))  # type: ignore[arg-type]


def test_settings_that_contradict_each_other_are_a_config_error() -> None:
    with pytest.raises(ConfigError, match=r"parameters\.HINT_BF16: it contradicts INFERENCE_PRECISION_HINT 'F16'"):
        read_settings(context(HINT_BF16="YES", INFERENCE_PRECISION_HINT="f16"))


@pytest.mark.parametrize("device", ["AUTO", "HETERO:CPU", "MULTI:CPU"])
def test_virtual_devices(load: Callable[..., Any], device: str) -> None:
    assert load("add_sub", TARGET_DEVICE=device).signature().inputs[0].name == "LEFT"


@pytest.mark.parametrize("device, named", [("GPU", "GPU"), ("NPU", "NPU"), ("AUTO:GPU,CPU", "GPU"), ("toaster", "TOASTER")])
def test_a_device_that_is_not_there_is_named(load: Callable[..., Any], device: str, named: str) -> None:
    with pytest.raises(ModelError, match=f"model 'add_sub': OpenVINO finds no device '{named}' on this machine, only CPU"):
        load("add_sub", TARGET_DEVICE=device)


def test_an_instance_on_an_nvidia_gpu_is_refused(tmp_path: Path, load: Callable[..., Any]) -> None:
    gpu = Placement("m", InstanceKind.KIND_GPU)
    with pytest.raises(ModelError, match=r"model 'm': OpenVINO does not run on NVIDIA GPUs; write .*KIND_CPU.*TARGET_DEVICE"):
        OpenVinoBackend().load(evolve(context(), placements=(gpu,)))
    with pytest.raises(ModelError, match="model 'add_sub': OpenVINO does not run on NVIDIA GPUs"):
        load("add_sub").instance(gpu)


def test_an_extension_that_is_not_there_is_a_config_error(load: Callable[..., Any]) -> None:
    with pytest.raises(ConfigError, match=r"parameters\.CPU_EXTENSION_PATH: cannot load '/no/such\.so': there is no such file"):
        load("add_sub", CPU_EXTENSION_PATH="/no/such.so")


def test_an_extension_that_is_none_is_a_config_error(load: Callable[..., Any], tmp_path: Path) -> None:
    library = tmp_path / "extension.so"
    library.write_bytes(b"no library")
    with pytest.raises(ConfigError, match=r"parameters\.CPU_EXTENSION_PATH: cannot load '.*extension\.so': "):
        load("add_sub", CPU_EXTENSION_PATH=str(library))


def test_streams_follow_the_instances(load: Callable[..., Any]) -> None:
    cores = len(os.sched_getaffinity(0))
    assert load("add_sub", instances=2)._compiled.get_property("NUM_STREAMS") == min(2, cores)


def test_precision_that_the_processor_lacks_is_told_of(load: Callable[..., Any], caplog: pytest.LogCaptureFixture) -> None:
    used = load("add_sub", HINT_BF16="YES")._compiled.get_property("INFERENCE_PRECISION_HINT").get_type_name()
    assert (used == "bf16") != ("this processor does not compute with bf16; f32 is used" in caplog.text)


@pytest.mark.parametrize(
    "names, found",
    [
        ({"model.xml", "model.bin"}, True),
        ({"model.xml"}, True),
        ({"other.xml"}, False),
        ({"model.xml/other"}, False),
        ({"model.onnx"}, False),
    ],
)
def test_discovers_by_name(names: set[str], found: Any) -> None:
    match = discover_model(VersionFiles("m", frozenset(names)))
    assert (match is not None) == found
    if match:
        assert (match.backend, match.platform, match.default_model_filename) == ("openvino", "", "model.xml")


@pytest.mark.parametrize(
    "config, names, chosen",
    [
        (ModelConfig(backend="openvino", default_model_filename="model.xml"), {"model.onnx"}, "model.onnx"),
        (ModelConfig(backend="openvino"), {"model.saved_model/saved_model.pb", "model.tflite"}, "model.saved_model"),
        (ModelConfig(backend="openvino"), {"model.xml", "model.onnx"}, None),
        (ModelConfig(backend="openvino", default_model_filename="mine.onnx"), {"model.onnx"}, None),
        (ModelConfig(backend="openvino"), {"readme"}, None),
        (ModelConfig(backend="onnxruntime"), {"model.onnx"}, None),
    ],
)
def test_chooses_another_format_if_the_backend_is_named(config: ModelConfig, names: set[str], chosen: str | None) -> None:
    assert select_model_file(config, VersionFiles("m", frozenset(names))) == chosen


def test_registers_one_backend() -> None:
    (backend,) = backends()
    assert (backend.name, tuple(backend.platforms)) == ("openvino", ())


def test_without_openvino_the_error_says_what_to_install(load: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openvino", None)
    with pytest.raises(PluginError, match=r"model 'add_sub'.*needs OpenVINO.*pip install moorage-openvino"):
        load("add_sub")


def test_importing_the_plugin_imports_no_framework() -> None:
    code = "import sys, moorage_openvino.plugin; assert 'openvino' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
