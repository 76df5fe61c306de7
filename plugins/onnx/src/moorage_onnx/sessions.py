"""Makes the sessions of one model."""

from __future__ import annotations

import threading
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType
from typing import Any

from moorage.backend import LoadContext, Placement, Signature
from moorage.errors import ModelError
from moorage_onnx.accelerators import OPENVINO
from moorage_onnx.faults import load_error
from moorage_onnx.onnx_file import inspect_file
from moorage_onnx.operators import OperatorLibraries
from moorage_onnx.options import run_options, session_options
from moorage_onnx.providers import check_built_in, check_obtained, wanted
from moorage_onnx.tensors import read_signature
from moorage_onnx.weights import ExternalWeights

_ONE_AT_A_TIME = threading.Lock()
"""Sessions with OpenVINO are not to be made at the same time."""


class SessionMaker:
    """Knows all that the sessions of a model have in common: the file, its weights, the options."""

    def __init__(self, runtime: ModuleType, context: LoadContext, path: Path) -> None:
        self.runtime = runtime
        self.path = path
        self._seen = _stamp(path)
        self.facts = inspect_file(path)
        self.run_options = run_options(runtime, context)
        self._context = context
        self._operators = OperatorLibraries(context)
        self._weights = ExternalWeights(context.model_name, path.parent, self.facts.external)

    def make(self, placement: Placement) -> Any:
        """A session on this device, with exactly the execution providers that the configuration asks for."""
        context = self._context
        providers = wanted(context.config, placement)
        check_built_in(context.model_name, providers, self.runtime.get_available_providers())
        options = session_options(self.runtime, context)
        self._weights.give_to(options)
        self._operators.give_to(options)
        alone = any(provider.name == OPENVINO for provider in providers)
        try:
            with _ONE_AT_A_TIME if alone else nullcontext():
                session = self.runtime.InferenceSession(
                    self.path, options, providers=list(map(tuple, providers)), enable_fallback=0
                )
        except Exception as error:
            raise load_error(error, context.model_name, context.version, self.path) from error
        check_obtained(context.model_name, providers, session.get_providers())
        if _stamp(self.path) != self._seen:
            raise ModelError(
                f"model '{context.model_name}' version {context.version}: {self.path} has changed since it was first read, and "
                "all instances must run the same model; load it again"
            )
        return session

    def signature(self, session: Any) -> Signature:
        """What the file declares. Raises Unsupported for tensors that requests cannot carry."""
        try:
            return read_signature(session, self._context.model_name, self.facts)
        except Exception as error:  # names that are no text
            raise load_error(error, self._context.model_name, self._context.version, self.path) from error


def _stamp(path: Path) -> tuple[int, int, int]:
    """What changes with the content of a file."""
    found = path.stat()
    return found.st_mtime_ns, found.st_size, found.st_ino
