"""ONNX models over the wire, against ONNX Runtime itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import onnxruntime
import pytest

from frameworks.answering import Served, serving, strings
from layers.sources import ROOT
from moorage.testing import RepositoryBuilder

MODELS = ROOT / "plugins" / "onnx" / "tests" / "models"
BATCHING = (
    "max_batch_size: 8 dynamic_batching { max_queue_delay_microseconds: 2000 } instance_group { count: 2 kind: KIND_CPU }"
)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    repository = RepositoryBuilder(tmp_path_factory.mktemp("onnx"))
    for name in ("add_sub", "identity_bytes", "conv", "table"):
        repository.onnx(name, MODELS / f"{name}.onnx")
    repository.onnx("batching", MODELS / "add_sub.onnx", config=BATCHING)
    with serving(repository.path) as served:
        yield served


def own(name: str, inputs: Any) -> dict[str, np.ndarray]:
    """What ONNX Runtime answers."""
    path = MODELS / f"{name}.onnx"
    session = onnxruntime.InferenceSession(path / "model.onnx" if path.is_dir() else path, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs), strict=True))


def sides(seed: int, rows: int = 1) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {name: rng.normal(size=(rows, 3)).astype(np.float32) for name in ("LEFT", "RIGHT")}


def test_adds_and_subtracts(served: Served) -> None:
    inputs = sides(0, rows=4)
    served.agrees("add_sub", inputs, own("add_sub", inputs))


def test_an_answer_that_differs_is_told_with_the_way_it_came(served: Served) -> None:
    inputs = sides(0)
    wanted = own("add_sub", inputs)
    with pytest.raises(AssertionError, match="HTTP, JSON: GAP"):
        served.agrees("add_sub", inputs, {**wanted, "GAP": wanted["TOTAL"]})
    with pytest.raises(AssertionError, match="HTTP, JSON: GAP"):
        served.agrees("add_sub", inputs, {**wanted, "GAP": wanted["GAP"].astype(np.float64)})


def test_strings(served: Served) -> None:
    words = ["", "plain", "é €", "b'quoted'", "two words"]
    (answer,) = own("identity_bytes", {"X": np.array([words], dtype=object)})["Y"]
    served.agrees("identity_bytes", {"X": strings(*words)}, {"Y": strings(*answer)})


def test_batches_of_many_clients(served: Served) -> None:
    requests = [sides(seed, rows=1 + seed % 3) for seed in range(40)]
    served.agrees_with_many_clients("batching", requests, [own("add_sub", inputs) for inputs in requests])


def test_convolution(served: Served) -> None:
    image = np.random.default_rng(1).normal(size=(2, 1, 17, 23)).astype(np.float32)
    served.agrees("conv", {"IMAGE": image}, own("conv", {"IMAGE": image}), rtol=1e-5)


def test_a_folder_with_weights_of_its_own(served: Served) -> None:
    rows = np.array([0, 4095, 17])
    served.agrees("table", {"ROW": rows.reshape(3, 1)}, own("table", {"ROW": rows}))
