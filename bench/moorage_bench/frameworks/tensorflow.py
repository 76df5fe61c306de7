"""TensorFlow's SavedModel."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from moorage_bench.frameworks.framework import ADD_SUB, LAYERS, WIDTH, Arrays, Call, weights

_THREADS = 1
_BETWEEN = 2


def write(kind: str, folder: Path) -> None:
    """Write `model.savedmodel`."""
    tf = _tensorflow()
    module = tf.Module()
    columns = None if kind == ADD_SUB else WIDTH
    names = ["INPUT0", "INPUT1"] if kind == ADD_SUB else ["INPUT0"]
    if kind == ADD_SUB:
        function = tf.function(lambda INPUT0, INPUT1: {"OUTPUT0": INPUT0 + INPUT1, "OUTPUT1": INPUT0 - INPUT1})  # noqa: N803
    else:
        module.weight = tf.constant(weights())
        function = tf.function(lambda INPUT0: {"OUTPUT0": _layers(tf, INPUT0, module.weight)})  # noqa: N803
    signature = function.get_concrete_function(*(tf.TensorSpec((None, columns), tf.float32, name=name) for name in names))
    tf.saved_model.save(module, str(folder / "model.savedmodel"), signatures=signature)


def bare(folder: Path) -> Call:
    """The signature's function, from arrays to arrays."""
    tf = _tensorflow()
    loaded = tf.saved_model.load(str(folder / "model.savedmodel"))
    function = loaded.signatures["serving_default"]

    def call(inputs: Arrays, _keeps: object = loaded) -> object:
        results = function(**{name: tf.constant(array) for name, array in inputs.items()})
        return {name: value.numpy() for name, value in results.items()}

    return call


def _layers(tf: Any, value: Any, weight: Any) -> Any:
    for _ in range(LAYERS):
        value = tf.matmul(value, weight)
    return value


def _tensorflow() -> Any:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow as tf  # noqa: PLC0415 - where a framework is missing, the others are measured

    try:
        tf.config.threading.set_intra_op_parallelism_threads(_THREADS)
        tf.config.threading.set_inter_op_parallelism_threads(_BETWEEN)
    except RuntimeError:
        pass  # it has been called already, and can be told only before
    return tf
