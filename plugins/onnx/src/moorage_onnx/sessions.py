"""Makes the sessions of one model."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

from moorage.backend import LoadContext, Placement
from moorage_onnx.faults import load_error
from moorage_onnx.onnx_file import inspect_file
from moorage_onnx.options import run_options, session_options
from moorage_onnx.providers import check_built_in, check_obtained, wanted
from moorage_onnx.weights import ExternalWeights


class SessionMaker:
    """Knows all that the sessions of a model have in common: the file, its weights, the options."""

    def __init__(self, runtime: ModuleType, context: LoadContext, path: Path) -> None:
        self.runtime = runtime
        self.path = path
        self.facts = inspect_file(path)
        self.run_options = run_options(runtime, context)
        self._context = context
        self._weights = ExternalWeights(context.model_name, path.parent, self.facts.external)

    def make(self, placement: Placement) -> Any:
        """A session on this device, with exactly the execution providers that the configuration asks for."""
        context = self._context
        providers = wanted(context.config, placement)
        check_built_in(context.model_name, providers, self.runtime.get_available_providers())
        options = session_options(self.runtime, context)
        self._weights.give_to(options)
        try:
            session = self.runtime.InferenceSession(self.path, options, providers=list(map(tuple, providers)))
        except Exception as error:
            raise load_error(error, context.model_name, context.version, self.path) from error
        check_obtained(context.model_name, providers, session.get_providers())
        session.disable_fallback()
        return session
