"""What a model's parameters and the server's `--backend-config` say about OpenVINO."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import frozen

from moorage.backend import LoadContext
from moorage.errors import ConfigError, Fault
from moorage_openvino.faults import reason

_CHOICES = {
    "PERFORMANCE_HINT": ("LATENCY", "THROUGHPUT", "CUMULATIVE_THROUGHPUT"),
    "INFERENCE_PRECISION_HINT": ("F32", "BF16", "F16", "DYNAMIC"),
    "HINT_BF16": ("YES", "NO"),
}
_NUMBERS = ("INFERENCE_NUM_THREADS", "COMPILATION_NUM_THREADS")
_STREAMS = ("AUTO", "NUMA")
_WORDS = {"YES": True, "TRUE": True, "1": True, "ON": True, "NO": False, "FALSE": False, "0": False, "OFF": False}


@frozen
class Settings:
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


def read_settings(context: LoadContext) -> Settings:
    """The model's parameters over the server's settings for this backend. Raises ConfigError naming all that are wrong."""
    own = {name: value.string_value for name, value in context.config.parameters.items()}
    given = {name: text.strip() for name, text in {**context.backend_config, **own}.items() if text.strip()}
    reader = _Reader(given)
    properties = reader.properties()
    settings = Settings(
        model=context.model_name,
        given=given,
        device=given.get("TARGET_DEVICE", "CPU").upper(),
        extension=given.get("CPU_EXTENSION_PATH", ""),
        fixed_batch=reader.flag("SKIP_OV_DYNAMIC_BATCHSIZE"),
        padding=reader.flag("ENABLE_BATCH_PADDING"),
        reshape=reader.flag("RESHAPE_IO_LAYERS"),
        properties=properties,
    )
    if reader.faults:
        raise ConfigError(reader.faults, context.model_name)
    return settings


class _Reader:
    """Reads settings one by one and collects what is wrong with them."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self.faults: list[Fault] = []
        self._given = given

    def properties(self) -> dict[str, str]:
        found = {name: self._number(name) for name in _NUMBERS} | {name: self._choice(name) for name in _CHOICES}
        found["NUM_STREAMS"] = self._streams()
        bf16 = found.pop("HINT_BF16") == "YES"
        precision = found["INFERENCE_PRECISION_HINT"]
        if bf16 and precision not in ("", "BF16"):
            self._fault("HINT_BF16", f"it contradicts INFERENCE_PRECISION_HINT '{precision}'", "leave one of them out")
        found["INFERENCE_PRECISION_HINT"] = "bf16" if bf16 else precision.lower()
        return {name: text for name, text in found.items() if text}

    def flag(self, name: str) -> bool:
        text = self._given.get(name, "NO").upper()
        if text not in _WORDS:
            self._fault(name, f"'{self._given[name]}' is neither YES nor NO", "write YES or NO")
        return _WORDS.get(text, False)

    def _choice(self, name: str) -> str:
        text = self._given.get(name, "").upper()
        if text and text not in _CHOICES[name]:
            wanted = ", ".join(_CHOICES[name])
            self._fault(name, f"'{self._given[name]}' is none of {wanted}", f"write one of {wanted}")
        return text

    def _number(self, name: str) -> str:
        text = self._given.get(name, "")
        if text and not (text.isascii() and text.isdigit()):
            self._fault(name, f"'{text}' is not a non-negative number", "write a number, or leave it out")
        return text

    def _streams(self) -> str:
        text = self._given.get("NUM_STREAMS", "").upper()
        if text in _STREAMS:
            return text
        if text and not (text.isascii() and text.isdigit()):
            self._fault(
                "NUM_STREAMS", f"'{self._given['NUM_STREAMS']}' is neither AUTO nor NUMA nor a number", "write one of them"
            )
        return text

    def _fault(self, name: str, message: str, advice: str) -> None:
        self.faults.append(Fault(message, field=f"parameters.{name}", advice=advice))
