"""Finds TensorFlow, and keeps its start-up noise away from users."""

from __future__ import annotations

import importlib
import logging
import os
import sys
import threading
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

    Each session gets its own threads for the inside of operators, so that what one model asks for does not bind the others.
    """
    if "tensorflow" in sys.modules:
        return importlib.import_module("tensorflow")
    os.environ.setdefault(_POOL_PER_SESSION, "1")
    quiet = _LOG_LEVEL not in os.environ
    if quiet:
        os.environ[_LOG_LEVEL] = "3"
    tf = importlib.import_module("tensorflow")
    if quiet:
        tf.get_logger().setLevel(logging.ERROR)
    return tf
