"""Metrics that models make: not supported yet, and saying so."""

from __future__ import annotations

import enum
from typing import NoReturn

from moorage_python.runtime.failures import NotSupportedYet


class MetricKind(enum.Enum):
    """Kinds of metrics."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class MetricFamily:
    """A family of metrics. Making one raises an error that says that they are not supported yet."""

    COUNTER = MetricKind.COUNTER
    GAUGE = MetricKind.GAUGE
    HISTOGRAM = MetricKind.HISTOGRAM

    def __init__(self, name: str, description: str, kind: MetricKind) -> None:
        raise NotSupportedYet(f"metric family '{name}': metrics of models are not supported yet")


def load_model(model_name: str, config: str = "", files: object = None) -> NoReturn:  # noqa: ARG001
    """Load a model of the server from within a model: not supported yet."""
    raise NotSupportedYet(f"loading '{model_name}' from within a model is not supported yet; use the server's API")


def unload_model(model_name: str, unload_dependents: bool = False) -> NoReturn:  # noqa: ARG001
    """Unload a model of the server from within a model: not supported yet."""
    raise NotSupportedYet(f"unloading '{model_name}' from within a model is not supported yet; use the server's API")


def is_model_ready(model_name: str, model_version: str = "") -> NoReturn:  # noqa: ARG001
    """Whether a model of the server is ready: not supported yet."""
    raise NotSupportedYet(f"asking for '{model_name}' from within a model is not supported yet; use the server's API")
