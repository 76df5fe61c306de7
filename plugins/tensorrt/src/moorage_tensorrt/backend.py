"""The backend: looks at plans and GPUs before it touches TensorRT."""

from __future__ import annotations

from typing import ClassVar

from moorage.backend import Backend, LoadContext, LoadedModel
from moorage.config.schema import InstanceKind
from moorage.errors import ModelError
from moorage_tensorrt import driver
from moorage_tensorrt.cuda import Cuda, import_cuda
from moorage_tensorrt.model import TensorRtModel
from moorage_tensorrt.plan import check_plan
from moorage_tensorrt.runtimes import INSTALL, TensorRtFinder
from moorage_tensorrt.settings import read_settings

DEFAULT_FILE = "model.plan"


class TensorRtBackend(Backend):
    """Runs plans with TensorRT on NVIDIA GPUs."""

    name: ClassVar[str] = "tensorrt"
    platforms = ("tensorrt_plan",)
    default_model_filename = DEFAULT_FILE
    install_hint = INSTALL

    def __init__(self) -> None:
        self._finder = TensorRtFinder()

    def load(self, context: LoadContext) -> LoadedModel:
        """Make the engines of a version's plans, one for each GPU that instances are placed on."""
        model = context.model_name
        settings = read_settings(context)
        plans = {context.file_for(placement) for placement in context.placements} or {context.model_file}
        rtx = {check_plan(model, path) for path in plans}
        if len(rtx) > 1:
            raise ModelError(f"model '{model}': some of its plans are for TensorRT, some for TensorRT for RTX; use one of them")
        _refuse_cpu(context)
        driver.require_devices(model, {placement.device_id for placement in context.placements})
        tensorrt = self._finder.find(model, settings, rtx=rtx.pop())
        return TensorRtModel(context, tensorrt, Cuda(import_cuda(model), model), settings)


def _refuse_cpu(context: LoadContext) -> None:
    """Raise ModelError if an instance is not on a GPU, or if there are no instances to make an engine for."""
    off = next((placement for placement in context.placements if placement.kind is not InstanceKind.KIND_GPU), None)
    if off is None and context.placements:
        return
    what = f"its instance '{off.name}' is placed on {off.kind.name}" if off is not None else "it has no instances"
    why = driver.trouble()
    advice = f"{why}; {driver.ADVICE}" if why else "write instance_group { kind: KIND_GPU }"
    raise ModelError(f"model '{context.model_name}': TensorRT runs on NVIDIA GPUs only, and {what}: {advice}")
