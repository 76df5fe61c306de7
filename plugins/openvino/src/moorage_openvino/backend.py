"""The backend: finds OpenVINO, and loads models with it."""

from __future__ import annotations

from types import ModuleType
from typing import ClassVar

from moorage.backend import Backend, LoadContext, LoadedModel
from moorage.config.schema import InstanceKind
from moorage.errors import ModelError, PluginError
from moorage_openvino.files import read_model
from moorage_openvino.model import OpenVinoModel
from moorage_openvino.settings import read_settings

DEFAULT_FILE = "model.xml"
OTHER_FILES = ("model.onnx", "model.saved_model", "model.savedmodel", "model.pb", "model.tflite", "model.pdmodel")
"""Models of other formats that OpenVINO reads, for configurations with `backend: "openvino"`."""
INSTALL = "`pip install moorage-openvino`"


class OpenVinoBackend(Backend):
    """Runs models with OpenVINO, on the CPU or the device that `TARGET_DEVICE` names."""

    name: ClassVar[str] = "openvino"
    default_model_filename = DEFAULT_FILE
    install_hint = INSTALL

    def load(self, context: LoadContext) -> LoadedModel:
        """Read a model into memory and compile it, once for all instances."""
        refuse_cuda(context)
        runtime = import_runtime(context.model_name)
        settings = read_settings(context)
        core = runtime.Core()
        core.set_property({"ENABLE_MMAP": False})
        if settings.extension:
            settings.add_extension(core)
        return OpenVinoModel(context, runtime, core, read_model(runtime, core, context), settings)


def refuse_cuda(context: LoadContext) -> None:
    """Raise ModelError if an instance is placed on an NVIDIA GPU, which OpenVINO does not drive."""
    if any(placement.kind is InstanceKind.KIND_GPU for placement in context.placements):
        raise ModelError(
            f"model '{context.model_name}': OpenVINO does not run on NVIDIA GPUs; write instance_group {{ kind: KIND_CPU }}, "
            "and name an Intel GPU in the parameter TARGET_DEVICE"
        )


def import_runtime(model: str) -> ModuleType:
    """The module `openvino`. Raises PluginError that says what to install."""
    try:
        import openvino  # noqa: PLC0415 - not before a model needs it
    except ImportError as error:
        raise PluginError(
            f"model '{model}': the backend 'openvino' needs OpenVINO, which cannot be imported ({error}): {INSTALL}"
        ) from error
    module: ModuleType = openvino
    return module
