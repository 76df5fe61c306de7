"""Finds TensorFlow, and keeps its start-up noise away from users."""

from __future__ import annotations

import importlib
import logging
import os
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from attrs import frozen

from moorage.errors import PluginError

INSTALL = '`pip install "moorage-tensorflow[cpu]"`, or "moorage-tensorflow[gpu]" on a machine with an NVIDIA GPU'
_LOG_LEVEL = "TF_CPP_MIN_LOG_LEVEL"
_POOL_PER_SESSION = "TF_OVERRIDE_GLOBAL_THREADPOOL"
_lock = threading.Lock()


@frozen
class Runtime:
    """TensorFlow's modules, as far as they are needed."""

    tf: ModuleType
    v1: Any
    """`tensorflow.compat.v1`: graphs and sessions."""
    config: ModuleType
    """The messages of `config.proto`."""
    saved_model: ModuleType
    """The messages of `saved_model.proto`."""
    meta_graph: ModuleType
    """The messages of `meta_graph.proto`."""


def import_runtime(model: str) -> Runtime:
    """TensorFlow. Raises PluginError that says what to install."""
    with _lock:
        try:
            tf = _quietly_imported()
            messages = [
                importlib.import_module(f"tensorflow.core.protobuf.{name}_pb2")
                for name in ("config", "saved_model", "meta_graph")
            ]
        except ImportError as error:
            raise PluginError(
                f"model '{model}': the backend 'tensorflow' needs TensorFlow, which cannot be imported ({error}): {INSTALL}"
            ) from error
    return Runtime(tf, tf.compat.v1, *messages)


def _quietly_imported() -> ModuleType:
    """The module. What it prints by itself is left out, unless `TF_CPP_MIN_LOG_LEVEL` says what is wanted.

    Each session is to have its own threads for the inside of operators, so that what one model asks for does not bind the
    others. TensorFlow asks the environment for both, but once: it is as before when this returns.
    """
    if "tensorflow" in sys.modules:
        return importlib.import_module("tensorflow")
    quiet = _LOG_LEVEL not in os.environ
    with _environment({_LOG_LEVEL: "3", _POOL_PER_SESSION: "1"}), _without_keras():
        tf = importlib.import_module("tensorflow")
        with tf.Graph().as_default(), tf.compat.v1.Session() as session:
            session.list_devices()
    if quiet:
        tf.get_logger().setLevel(logging.ERROR)
    return tf


@contextmanager
def _environment(defaults: Mapping[str, str]) -> Iterator[None]:
    """Environment variables for a while, where the user has set no others."""
    added = {name: value for name, value in defaults.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)


@contextmanager
def _without_keras() -> Iterator[None]:
    """Keep this thread from importing Keras, which TensorFlow does beforehand and no session needs: it takes seconds.

    `tf.keras` is there as usual for whoever uses it later.
    """
    finder = _Refusal(threading.get_ident())
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


class _Refusal:
    """Finds nothing inside Keras for one thread."""

    def __init__(self, thread: int) -> None:
        self._thread = thread

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> None:
        if name.startswith("keras.") and threading.get_ident() == self._thread:
            raise ModuleNotFoundError(name)
