"""TorchScript models and exported programs over the wire, against PyTorch itself."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

from frameworks.answering import Served, serving, strings
from layers.sources import ROOT
from moorage.testing import RepositoryBuilder

MODELS = ROOT / "plugins" / "torchscript" / "tests" / "models"
BATCHING = (
    "max_batch_size: 8 dynamic_batching { max_queue_delay_microseconds: 2000 } instance_group { count: 2 kind: KIND_CPU } "
)


def tensors(field: str, *names: str, data_type: str = "TYPE_FP32", dims: str = "3") -> str:
    return f"{field} [ " + ", ".join(f'{{ name: "{name}" data_type: {data_type} dims: [ {dims} ] }}' for name in names) + " ] "


SIDES = tensors("input", "INPUT__0", "INPUT__1") + tensors("output", "OUTPUT__0", "OUTPUT__1")
WORDS = (
    tensors("input", "words", data_type="TYPE_STRING", dims="-1")
    + tensors("input", "number", data_type="TYPE_INT64", dims="1")
    + tensors("output", "OUTPUT__0", data_type="TYPE_STRING", dims="-1")
    + tensors("output", "OUTPUT__1", data_type="TYPE_INT64", dims="1")
)
IMAGE = "max_batch_size: 4 " + tensors("input", "IMAGE", dims="1, -1, -1") + tensors("output", "BLURRED", dims="1, -1, -1")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    repository = RepositoryBuilder(tmp_path_factory.mktemp("torchscript"))
    scripts = {"add_sub": "max_batch_size: 8 " + SIDES, "words": WORDS, "blur": IMAGE}
    for name, config in scripts.items():
        repository.add(name, {"1/model.pt": MODELS / f"{name}.pt"}, config=config)
    repository.add("batching", {"1/model.pt": MODELS / "add_sub.pt"}, config=BATCHING + SIDES)
    for name in ("nested", "rows"):
        repository.add(name, {"1/model.pt2": MODELS / f"{name}.pt2"})
    repository.add("batching_program", {"1/model.pt2": MODELS / "add_sub.pt2"}, config=BATCHING)
    with serving(repository.path) as served:
        yield served


def own(name: str, *inputs: Any) -> Any:
    """What PyTorch answers to a TorchScript model."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = torch.jit.load(MODELS / f"{name}.pt")  # type: ignore[no-untyped-call]
    return model(*(torch.from_numpy(array) if isinstance(array, np.ndarray) else array for array in inputs))


def sides(seed: int, rows: int = 1, names: tuple[str, str] = ("INPUT__0", "INPUT__1")) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {name: rng.normal(size=(rows, 3)).astype(np.float32) for name in names}


def sums(inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    total, gap = own("add_sub", *inputs.values())
    return {"OUTPUT__0": total.numpy(), "OUTPUT__1": gap.numpy()}


def test_adds_and_subtracts(served: Served) -> None:
    inputs = sides(0, rows=4)
    served.agrees("add_sub", inputs, sums(inputs))


def test_strings(served: Served) -> None:
    texts = ["", "plain", "é €", "b'quoted'", "two words"]
    shouted, count = own("words", texts, np.array([4]))
    inputs = {"words": strings(*texts, shape=(5,)), "number": np.array([4])}
    served.agrees("words", inputs, {"OUTPUT__0": strings(*shouted, shape=(5,)), "OUTPUT__1": count.numpy()})


def test_batches_of_many_clients(served: Served) -> None:
    requests = [sides(seed, rows=1 + seed % 3) for seed in range(40)]
    served.agrees_with_many_clients("batching", requests, [sums(inputs) for inputs in requests])


def test_batches_of_an_exported_program(served: Served) -> None:
    requests = [sides(seed, rows=1 + seed % 3, names=("LEFT", "RIGHT")) for seed in range(40)]
    wanted = [{"TOTAL": found["OUTPUT__0"], "GAP": found["OUTPUT__1"]} for found in map(sums, requests)]
    served.agrees_with_many_clients("batching_program", requests, wanted)


def test_convolution(served: Served) -> None:
    image = np.random.default_rng(1).normal(size=(2, 1, 17, 23)).astype(np.float32)
    served.agrees("blur", {"IMAGE": image}, {"BLURRED": own("blur", image).detach().numpy()}, rtol=1e-5)


def test_a_program_with_containers_and_no_configuration(served: Served) -> None:
    rng = np.random.default_rng(2)
    rows, bias, scale = (rng.normal(size=(4, size)).astype(np.float32) for size in (3, 2, 3))
    program = torch.export.load(MODELS / "nested.pt2").module()
    found = program(torch.from_numpy(rows), {"bias": torch.from_numpy(bias)}, scale=torch.from_numpy(scale))
    wanted = {"sums": found["sums"].detach().numpy(), "pair_0": found["pair"][0].numpy()}
    served.agrees("nested", {"rows": rows, "extra_bias": bias, "scale": scale}, wanted, rtol=1e-5)


def test_weights_of_a_program(served: Served) -> None:
    rows = np.array([0, 1023, 17])
    wanted = own("rows", rows).detach().numpy()
    served.agrees("rows", {"ROW": rows.reshape(3, 1)}, {"OUTPUT__0": wanted})
