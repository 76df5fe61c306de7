"""The backend: imports a version's `model.py` and makes instances of its class."""

from __future__ import annotations

import logging
from typing import ClassVar

from moorage.backend import Backend, Instance, LoadContext, LoadedModel, Placement
from moorage.errors import ModelError
from moorage_python.instance import PythonInstance
from moorage_python.runtime.host import HostFailure
from moorage_python.runtime.logger import MODEL_LOG
from moorage_python.source import DEFAULT_FILE, config_json, open_host

ENVIRONMENT = "EXECUTION_ENV_PATH"
"""The parameter by which a model asks for a Python environment of its own."""

log = logging.getLogger("moorage.python")


class PythonBackend(Backend):
    """Runs models written in Python, with the interface of Triton's Python backend."""

    name: ClassVar[str] = "python"
    default_model_filename = DEFAULT_FILE
    install_hint = '`pip install "moorage[python]"`'

    def __init__(self) -> None:
        # Whatever models log reaches the server's log, whose settings decide what is written.
        logging.getLogger(MODEL_LOG).setLevel(logging.DEBUG)

    def load(self, context: LoadContext) -> LoadedModel:
        """Import the model's file. Its class is instantiated for each instance."""
        return PythonModel(context)


class PythonModel(LoadedModel):
    """A version's code. Its instances share the module, each has an object of its class."""

    def __init__(self, context: LoadContext) -> None:
        self._context = context
        _warn_of_environment(context)
        self._host = open_host(
            context.model_name, context.version, context.model_file, context.version_path, context.model_path
        )

    def instance(self, placement: Placement) -> Instance:
        context = self._context
        try:
            hosted = self._host.instance(arguments(context, placement), decoupled=context.config.decoupled)
        except HostFailure as failure:
            raise ModelError(f"model '{context.model_name}' version {context.version}: {failure}") from failure.__cause__
        return PythonInstance(context, hosted)

    def close(self) -> None:
        self._host.close()


def _warn_of_environment(context: LoadContext) -> None:
    wanted = context.config.parameters.get(ENVIRONMENT)
    if wanted is not None:
        log.warning(
            "model '%s': %s (%s) is not supported, its code runs in the server's environment; install there what it imports",
            context.model_name,
            ENVIRONMENT,
            wanted.string_value,
        )


def arguments(context: LoadContext, placement: Placement) -> dict[str, str]:
    """What `initialize` is given; all values are text."""
    return {
        "model_config": config_json(context.config),
        "model_instance_kind": placement.kind.name.removeprefix("KIND_"),
        "model_instance_name": placement.name,
        "model_instance_device_id": str(placement.device_id),
        "model_repository": str(context.model_path),
        "model_version": str(context.version),
        "model_name": context.model_name,
    }
