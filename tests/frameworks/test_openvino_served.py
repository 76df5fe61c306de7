"""OpenVINO models over the wire, against OpenVINO itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import openvino
import pytest

from frameworks.answering import Served, serving, strings
from layers.sources import ROOT
from moorage.testing import RepositoryBuilder

MODELS = ROOT / "plugins" / "openvino" / "tests" / "models"
BATCHING = (
    "max_batch_size: 8 dynamic_batching { max_queue_delay_microseconds: 2000 } instance_group { count: 2 kind: KIND_CPU }"
)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    repository = RepositoryBuilder(tmp_path_factory.mktemp("openvino"))
    for name in ("add_sub", "identity_bytes", "conv_open", "table"):
        weights = MODELS / f"{name}.bin"
        files = {"1/model.xml": MODELS / f"{name}.xml", **({"1/model.bin": weights} if weights.exists() else {})}
        repository.add(name, files)
    repository.add("batching", {"1/model.xml": MODELS / "add_sub_static.xml"}, config=BATCHING)
    repository.add("onnx", {"1/model.onnx": MODELS / "add_sub.onnx"}, config='backend: "openvino"')
    with serving(repository.path) as served:
        yield served


def own(name: str, inputs: Any) -> dict[str, np.ndarray]:
    """What OpenVINO answers."""
    compiled = openvino.compile_model(MODELS / name, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    results = compiled(inputs if isinstance(inputs, dict) else [inputs])
    return {port.any_name: results[port] for port in compiled.outputs}


def sides(seed: int, rows: int = 1) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {name: rng.normal(size=(rows, 3)).astype(np.float32) for name in ("LEFT", "RIGHT")}


@pytest.mark.parametrize("model, file", [("add_sub", "add_sub.xml"), ("onnx", "add_sub.onnx")])
def test_adds_and_subtracts(served: Served, model: str, file: str) -> None:
    inputs = sides(0, rows=4)
    served.agrees(model, inputs, own(file, inputs))


def test_strings(served: Served) -> None:
    words = ["", "plain", "é €", "b'quoted'", "two words"]
    (answer,) = own("identity_bytes.xml", np.array([words]))["Y"]
    served.agrees("identity_bytes", {"X": strings(*words)}, {"Y": strings(*answer)})


def test_batches_of_many_clients_with_a_model_of_one_row(served: Served) -> None:
    requests = [sides(seed, rows=1 + seed % 3) for seed in range(40)]
    served.agrees_with_many_clients("batching", requests, [own("add_sub.xml", inputs) for inputs in requests])


def test_convolution(served: Served) -> None:
    image = np.random.default_rng(1).normal(size=(2, 1, 17, 23)).astype(np.float32)
    served.agrees("conv_open", {"IMAGE": image}, own("conv_open.xml", {"IMAGE": image}), rtol=1e-5)


def test_weights(served: Served) -> None:
    rows = np.array([0, 1023, 17])
    served.agrees("table", {"ROW": rows}, own("table.xml", {"ROW": rows}))


def test_the_batch_is_told_by_the_layout(served: Served) -> None:
    assert served.server.config("add_sub").max_batch_size > 0
    assert served.server.config("table").max_batch_size == 0
