"""Makes the small models of the tests: `python make_models.py` writes them beside itself."""

# mypy: disable-error-code="misc,untyped-decorator,import-untyped"

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

HERE = Path(__file__).parent
v1 = tf.compat.v1
KINDS = {
    "bool": tf.bool,
    "uint8": tf.uint8,
    "uint16": tf.uint16,
    "uint32": tf.uint32,
    "uint64": tf.uint64,
    "int8": tf.int8,
    "int16": tf.int16,
    "int32": tf.int32,
    "int64": tf.int64,
    "fp16": tf.float16,
    "fp32": tf.float32,
    "fp64": tf.float64,
    "bytes": tf.string,
    "bf16": tf.bfloat16,
}


def frozen(name: str, build: Callable[[], Any]) -> None:
    """Write the graph that `build` makes as `NAME.graphdef`."""
    graph = tf.Graph()
    with graph.as_default():
        build()
    (HERE / f"{name}.graphdef").write_bytes(graph.as_graph_def().SerializeToString(deterministic=True))


def saved(name: str, module: tf.Module, signatures: Any) -> None:
    """Write a module as `NAME.savedmodel`, without what serving does not need."""
    folder = fresh(name)
    options = tf.saved_model.SaveOptions(save_debug_info=False)
    tf.saved_model.save(module, folder, signatures=signatures, options=options)
    (folder / "fingerprint.pb").unlink(missing_ok=True)


def fresh(name: str) -> Path:
    folder = HERE / f"{name}.savedmodel"
    shutil.rmtree(folder, ignore_errors=True)
    return folder


def placeholder(kind: tf.DType, shape: Any, name: str) -> Any:
    return v1.placeholder(kind, shape, name=name)


def add_sub() -> None:
    left, right = (placeholder(tf.float32, [None, 3], name) for name in ("LEFT", "RIGHT"))
    tf.add(left, right, name="TOTAL")
    tf.subtract(left, right, name="GAP")


def identity(kind: tf.DType, shape: Any = (None, None)) -> Callable[[], Any]:
    return lambda: tf.identity(placeholder(kind, shape, "X"), name="Y")


def conv() -> None:
    """A 3x3 box blur of images of any size."""
    kernel = tf.constant(np.full((3, 3, 1, 1), 1 / 9, np.float32))
    tf.nn.conv2d(placeholder(tf.float32, [None, None, None, 1], "IMAGE"), kernel, 1, "SAME", name="BLURRED")


def many() -> None:
    """Two ways through a graph, one of which alone needs the second placeholder; and a node with two outputs."""
    one, other = placeholder(tf.float32, [None, 4], "ONE"), placeholder(tf.float32, [None, 4], "OTHER")
    tf.split(one, 2, axis=1, name="HALVES")
    tf.add(one, other, name="SUM")


def table_row() -> None:
    tf.gather(tf.constant([10.0, 20.0, 30.0]), placeholder(tf.int64, [None], "ROW"), name="VALUE")


def scaled() -> None:
    """An input with a default, which a request may leave out."""
    factor = v1.placeholder_with_default(tf.constant(2.0), [], name="FACTOR")
    tf.multiply(placeholder(tf.float32, [None, 2], "X"), factor, name="Y")


def counter() -> None:
    """Adds what it gets to a variable of its own; `init` sets that to 100."""
    total = v1.get_variable("total", initializer=tf.constant([100.0]), use_resource=False)
    tf.identity(v1.assign_add(total, placeholder(tf.float32, [1], "STEP")), name="SUM")
    tf.group(v1.global_variables_initializer(), name="init")


class Doubler(tf.Module):
    """Two signatures, a variable, and a fixed size."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = tf.Variable([2.0, 2.0, 2.0], name="weight")

    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32, name="X")])
    def double(self, X: Any) -> Any:
        return {"Y": X * self.weight}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int32, name="A"), tf.TensorSpec(None, tf.int32, name="B")])
    def other(self, A: Any, B: Any) -> Any:
        return {"SUM": tf.reduce_sum(A) + tf.reduce_sum(B)}


class Rows(tf.Module):
    """Looks up rows of a table of 1024 x 8."""

    def __init__(self) -> None:
        super().__init__()
        self.rows = tf.Variable(tf.reshape(tf.range(1024.0 * 8), [1024, 8]))

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int64, name="ROW")])
    def look_up(self, ROW: Any) -> Any:
        return {"VALUES": tf.gather(self.rows, ROW)}


class Words(tf.Module):
    """Looks words up in a table that is read from a file among its assets."""

    def __init__(self, vocabulary: Path) -> None:
        super().__init__()
        self.asset = tf.saved_model.Asset(str(vocabulary))
        self.table = tf.lookup.StaticVocabularyTable(
            tf.lookup.TextFileInitializer(
                self.asset, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER
            ),
            num_oov_buckets=1,
        )

    @tf.function(input_signature=[tf.TensorSpec([None, 1], tf.string, name="WORD")])
    def number(self, WORD: Any) -> Any:
        return {"NUMBER": self.table.lookup(WORD), "AGAIN": tf.identity(WORD)}


class Counter(tf.Module):
    """Counts its runs."""

    def __init__(self) -> None:
        super().__init__()
        self.total = tf.Variable([0.0])

    @tf.function(input_signature=[tf.TensorSpec([1], tf.float32, name="STEP")])
    def add(self, STEP: Any) -> Any:
        return {"SUM": self.total.assign_add(STEP)}


class Adder(tf.Module):
    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32, name=name) for name in ("LEFT", "RIGHT")])
    def add_sub(self, LEFT: Any, RIGHT: Any) -> Any:
        return {"TOTAL": LEFT + RIGHT, "GAP": LEFT - RIGHT}


class Odd(tf.Module):
    """A signature that no request can call."""

    @tf.function(input_signature=[tf.TensorSpec([None], tf.complex64, name="Z")])
    def complex_numbers(self, Z: Any) -> Any:
        return {"ABS": tf.abs(Z)}


def old_style() -> None:
    """As TensorFlow 1 wrote them: a reference variable, a table as the legacy init op, a signature and a tag of its own."""
    with tf.Graph().as_default(), v1.Session() as session:
        x = placeholder(tf.float32, [None, 2], "x")
        weight = v1.get_variable("weight", initializer=tf.constant([[1.0], [10.0]]), use_resource=False)
        y = tf.matmul(x, weight, name="y")
        session.run(v1.global_variables_initializer())
        signature = v1.saved_model.signature_def_utils.predict_signature_def({"in": x}, {"out": y})
        builder = v1.saved_model.Builder(str(fresh("old_style")))
        builder.add_meta_graph_and_variables(session, ["mine"], signature_def_map={"predict": signature})
        builder.save()


def keras_export() -> None:
    """What `model.export` of Keras 3 writes."""
    import keras

    layers = [keras.layers.Input((4,), name="features"), keras.layers.Dense(3, activation="softmax", name="scores")]
    folder = fresh("keras")
    keras.Sequential(layers).export(folder, verbose=False)
    (folder / "fingerprint.pb").unlink()


def main() -> None:
    frozen("add_sub", add_sub)
    for name, kind in KINDS.items():
        frozen(f"identity_{name}", identity(kind))
    frozen("unranked", identity(tf.float32, None))
    frozen("scalar_bytes", identity(tf.string, ()))
    frozen("scalar_bf16", identity(tf.bfloat16, ()))
    frozen("fixed_batch", identity(tf.float32, (1, 2)))
    for build in (conv, many, table_row, scaled, counter):
        frozen(build.__name__, build)
    adder, doubler, runs, odd, rows = Adder(), Doubler(), Counter(), Odd(), Rows()
    saved("rows", rows, rows.look_up)
    saved("add_sub", adder, adder.add_sub)
    saved("doubler", doubler, {"serving_default": doubler.double, "other": doubler.other})
    saved("runs", runs, runs.add)
    saved("odd", odd, {"serving_default": odd.complex_numbers})
    with tempfile.TemporaryDirectory() as folder:
        vocabulary = Path(folder) / "vocabulary.txt"
        vocabulary.write_text("zero\none\ntwo\n")
        words = Words(vocabulary)
        saved("words", words, words.number)
    old_style()
    keras_export()


if __name__ == "__main__":
    main()
