"""Compiles a model for a device, with the properties that the settings ask for and those that suit a server."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Set
from difflib import get_close_matches
from typing import Any

from moorage.backend import LoadContext
from moorage.errors import ModelError
from moorage_openvino.faults import load_error
from moorage_openvino.settings import DOCUMENTED, PRECISION, OpenVinoSettings

_VIRTUAL = frozenset({"AUTO", "MULTI", "HETERO", "BATCH"})
_NOT_OURS = frozenset({"CACHE_DIR", "DEVICE_ID", "ENABLE_MMAP", "MODEL_PTR", "WEIGHTS_PATH"})
"""Properties that would undo what the plugin takes care of."""

_log = logging.getLogger(__name__)


def compile_model(core: Any, model: Any, context: LoadContext, settings: OpenVinoSettings) -> Any:
    """An `openvino.CompiledModel`. Raises ModelError naming the device or what OpenVINO refuses."""
    _check_devices(core, settings)
    properties = _properties(core, context, settings)
    try:
        compiled = core.compile_model(model, settings.device, properties)
    except Exception as error:
        raise load_error(error, context.model_name, context.version, context.model_file) from error
    _tell_of_precision(compiled, properties, settings)
    return compiled


def _check_devices(core: Any, settings: OpenVinoSettings) -> None:
    """Refuse a device that this machine lacks; virtual ones such as HETERO:GPU,CPU name several."""
    available = core.available_devices
    families = {name for device in available for name in (device, _family(device))}
    for part in re.split(r"[:,]", settings.device):
        device = re.sub(r"\(\d+\)$", "", part.strip().lstrip("-"))
        if device and device not in _VIRTUAL and not {device, _family(device)} & families:
            raise ModelError(
                f"model '{settings.model}': OpenVINO finds no device '{device}' on this machine, only {', '.join(available)}; "
                "change the parameter TARGET_DEVICE or install the driver of the device"
            )


def _family(device: str) -> str:
    """`GPU` for the device `GPU.0`."""
    return device.partition(".")[0]


def _properties(core: Any, context: LoadContext, settings: OpenVinoSettings) -> dict[str, str]:
    """The server's defaults, under what the parameters say.

    The CPU gets a stream for each instance, so that as many requests run at once, and no threads tied to cores, since the
    models of a server would all be tied to the first ones. Numbers are computed with 32 bits unless fewer are asked for.
    """
    chosen: dict[str, str] = {}
    if not settings.device.startswith("NPU"):
        chosen[PRECISION] = "f32"
    if settings.device == "CPU":
        chosen["ENABLE_CPU_PINNING"] = "NO"
        if "PERFORMANCE_HINT" not in settings.properties:
            chosen["NUM_STREAMS"] = str(max(1, len(context.placements)))
    writable = {name for name, access in _supported(core, settings.device).items() if access != "RO"} - _NOT_OURS
    chosen |= {name: text for name, text in settings.given.items() if name in writable}
    _tell_of_slips(settings, writable)
    chosen |= settings.properties
    if "COMPILATION_NUM_THREADS" in chosen and "COMPILATION_NUM_THREADS" not in writable:
        _log.warning("model '%s': COMPILATION_NUM_THREADS has no effect on the device %s", settings.model, settings.device)
        del chosen["COMPILATION_NUM_THREADS"]
    return chosen


def _tell_of_slips(settings: OpenVinoSettings, writable: Set[str]) -> None:
    """A warning for each parameter that is nothing to the device, but nearly called like something that is."""
    known = (writable | DOCUMENTED) - _NOT_OURS
    for name in sorted(settings.given.keys() - known - _NOT_OURS):
        close = get_close_matches(name.upper(), sorted(known), n=1, cutoff=0.85)
        if close:
            _log.warning("model '%s': parameter %s does nothing; did you mean %s?", settings.model, name, close[0])


def _supported(core: Any, device: str) -> Mapping[str, str]:
    found: Mapping[str, str] = core.get_property(device.partition(":")[0], "SUPPORTED_PROPERTIES")
    return found


def _tell_of_precision(compiled: Any, properties: Mapping[str, str], settings: OpenVinoSettings) -> None:
    """A warning when the processor cannot compute with the precision asked for, and OpenVINO quietly takes another."""
    wanted = properties.get(PRECISION, "")
    if settings.device == "CPU" and wanted in ("bf16", "f16"):
        used = compiled.get_property(PRECISION).get_type_name()
        if used != wanted:
            _log.warning("model '%s': this processor does not compute with %s; %s is used", settings.model, wanted, used)
