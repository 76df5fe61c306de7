"""What a model's parameters and the server's `--backend-config` say about OpenVINO."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import frozen

from moorage.backend import LoadContext, Settings
from moorage.errors import ConfigError, Fault
from moorage_openvino.faults import reason

PRECISION = "INFERENCE_PRECISION_HINT"
_CHOICES = {
    "PERFORMANCE_HINT": ("LATENCY", "THROUGHPUT", "CUMULATIVE_THROUGHPUT"),
    PRECISION: ("F32", "BF16", "F16", "DYNAMIC"),
    "HINT_BF16": ("YES", "NO"),
}
_NUMBERS = ("INFERENCE_NUM_THREADS", "COMPILATION_NUM_THREADS")
_STREAMS = ("AUTO", "NUMA")
_OURS = ("TARGET_DEVICE", "CPU_EXTENSION_PATH", "SKIP_OV_DYNAMIC_BATCHSIZE", "ENABLE_BATCH_PADDING", "RESHAPE_IO_LAYERS")
DOCUMENTED = frozenset({*_CHOICES, *_NUMBERS, *_OURS, "NUM_STREAMS"})
"""The parameters that have a meaning whatever the device."""


@frozen
class OpenVinoSettings:
    """`given` are all parameters by name; `properties` those among OpenVINO's documented ones that are set, checked."""

    model: str
    given: Mapping[str, str]
    device: str
    extension: str
    fixed_batch: bool
    """Compile for exactly `max_batch_size` rows (`SKIP_OV_DYNAMIC_BATCHSIZE`)."""
    padding: bool
    """Fill up the batches of a model with a fixed batch size (`ENABLE_BATCH_PADDING`)."""
    reshape: bool
    """Give inputs the dims of the configuration (`RESHAPE_IO_LAYERS`)."""
    properties: Mapping[str, str]

    def add_extension(self, core: Any) -> None:
        """Load the library with custom operations. Raises ConfigError if that fails."""
        path = Path(self.extension)
        try:
            core.add_extension(path)
        except Exception as error:
            what = reason(error) if path.is_file() else "there is no such file"
            advice = "write the absolute path of a shared library"
            fault = Fault(f"cannot load '{path}': {what}", field="parameters.CPU_EXTENSION_PATH", advice=advice)
            raise ConfigError([fault], self.model) from error


def read_settings(context: LoadContext) -> OpenVinoSettings:
    """The model's parameters over the server's settings for this backend. Raises ConfigError naming one that is wrong."""
    settings = Settings.of(context)
    return OpenVinoSettings(
        model=context.model_name,
        given=settings.given(),
        device=settings.text("TARGET_DEVICE", "CPU").upper(),
        extension=settings.text("CPU_EXTENSION_PATH"),
        fixed_batch=settings.flag("SKIP_OV_DYNAMIC_BATCHSIZE"),
        padding=settings.flag("ENABLE_BATCH_PADDING"),
        reshape=settings.flag("RESHAPE_IO_LAYERS"),
        properties=_properties(settings),
    )


def _properties(settings: Settings) -> dict[str, str]:
    found = {name: _choice(settings, name) for name in _CHOICES} | {name: _number(settings, name) for name in _NUMBERS}
    found["NUM_STREAMS"] = _streams(settings)
    bf16, precision = found.pop("HINT_BF16") == "YES", found[PRECISION]
    if bf16 and precision not in ("", "BF16"):
        raise settings.fault("HINT_BF16", f"it contradicts {PRECISION} '{precision}'", "leave one of them out")
    found[PRECISION] = "bf16" if bf16 else precision.lower()
    return {name: text for name, text in found.items() if text}


def _choice(settings: Settings, name: str) -> str:
    text = settings.text(name).upper()
    if text and text not in _CHOICES[name]:
        raise settings.wrong(name, f"one of {', '.join(_CHOICES[name])}")
    return text


def _number(settings: Settings, name: str) -> str:
    return str(settings.number(name, 0)) if settings.text(name) else ""


def _streams(settings: Settings) -> str:
    text = settings.text("NUM_STREAMS").upper()
    if text not in _STREAMS and not (text.isascii() and text.isdigit()) and text:
        raise settings.wrong("NUM_STREAMS", "AUTO, NUMA or a number")
    return text
