"""TensorFlow models over the wire, against TensorFlow itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from frameworks.answering import Served, serving, strings
from layers.sources import ROOT
from moorage.testing import RepositoryBuilder
from moorage_tensorflow.runtime import import_runtime

MODELS = ROOT / "plugins" / "tensorflow" / "tests" / "models"
BATCHING = (
    "max_batch_size: 8 dynamic_batching { max_queue_delay_microseconds: 2000 } instance_group { count: 2 kind: KIND_CPU }"
)
OTHER = 'parameters { key: "TF_SIGNATURE_DEF" value { string_value: "other" } } max_batch_size: 0'
OTHER += ' input { name: "B" dims: [ 2, 2 ] }'


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    repository = RepositoryBuilder(tmp_path_factory.mktemp("tensorflow"))
    for name in ("add_sub", "words", "keras"):
        repository.add(name, {"1/model.savedmodel": MODELS / f"{name}.savedmodel"})
    for name in ("identity_bytes", "conv"):
        repository.add(name, {"1/model.graphdef": MODELS / f"{name}.graphdef"})
    repository.add("batching", {"1/model.savedmodel": MODELS / "add_sub.savedmodel"}, config=BATCHING)
    repository.add("other", {"1/model.savedmodel": MODELS / "doubler.savedmodel"}, config=OTHER)
    with serving(repository.path) as served:
        yield served


def own(name: str, inputs: Any, signature: str = "serving_default") -> dict[str, np.ndarray]:
    """What TensorFlow answers, in the way of its second version."""
    tf = import_runtime("tests").tf
    loaded = tf.saved_model.load(str(MODELS / f"{name}.savedmodel"))
    outputs = loaded.signatures[signature](**{key: tf.constant(array) for key, array in inputs.items()})
    return {key: tensor.numpy() for key, tensor in outputs.items()}


def own_graph(name: str, inputs: Any, output: str) -> dict[str, np.ndarray]:
    """What TensorFlow answers, in the way of its first version."""
    runtime = import_runtime("tests")
    with runtime.tf.Graph().as_default(), runtime.v1.Session() as session:
        runtime.tf.import_graph_def(runtime.v1.GraphDef.FromString((MODELS / f"{name}.graphdef").read_bytes()), name="")
        return {output: session.run(f"{output}:0", {f"{key}:0": array for key, array in inputs.items()})}


def sides(seed: int, rows: int = 1) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {name: rng.normal(size=(rows, 3)).astype(np.float32) for name in ("LEFT", "RIGHT")}


def test_adds_and_subtracts(served: Served) -> None:
    inputs = sides(0, rows=4)
    served.agrees("add_sub", inputs, own("add_sub", inputs))


def test_strings(served: Served) -> None:
    words = {"X": strings("", "plain", "é €", "b'quoted'", b"a\0b")}
    served.agrees("identity_bytes", words, own_graph("identity_bytes", words, "Y"))
    bits = {"X": strings(b"\xff\xfe", b"\0")}
    served.agrees("identity_bytes", bits, own_graph("identity_bytes", bits, "Y"), json=False)


def test_a_table(served: Served) -> None:
    words = {"WORD": strings("one", "nobody", shape=(2, 1))}
    served.agrees("words", words, own("words", words))


def test_batches_of_many_clients(served: Served) -> None:
    requests = [sides(seed, rows=1 + seed % 3) for seed in range(40)]
    answers = [{"TOTAL": inputs["LEFT"] + inputs["RIGHT"], "GAP": inputs["LEFT"] - inputs["RIGHT"]} for inputs in requests]
    served.agrees_with_many_clients("batching", requests, answers)


def test_convolution(served: Served) -> None:
    image = {"IMAGE": np.random.default_rng(1).normal(size=(2, 17, 23, 1)).astype(np.float32)}
    served.agrees("conv", image, own_graph("conv", image, "BLURRED"), rtol=1e-5)


def test_what_keras_exports(served: Served) -> None:
    features = {"features": np.random.default_rng(2).normal(size=(3, 4)).astype(np.float32)}
    served.agrees("keras", features, own("keras", features), rtol=1e-5)


def test_another_signature(served: Served) -> None:
    numbers = {"A": np.arange(3, dtype=np.int32), "B": np.array([[10, 20], [30, 40]], np.int32)}
    (total,) = own("doubler", numbers, "other").values()
    served.agrees("other", numbers, {"SUM": np.array([total])})
