"""What a model's parameters and the server's `--backend-config` say, read as what they mean."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Final

from attrs import field, frozen

from moorage.backend.contract import LoadContext
from moorage.config.schema import InstanceKind
from moorage.errors import ConfigError, Fault

SWITCH_WORDS: Final = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}
"""What may be written for a switch, in lower case."""


@frozen
class Settings:
    """The model's own parameters over the server's settings for this backend; empty text counts as not written.

    Faults are raised as ConfigError and name the model and the setting, with where it stands.
    """

    model: str
    own: Mapping[str, str] = field(factory=dict)
    server: Mapping[str, str] = field(factory=dict)

    @classmethod
    def of(cls, context: LoadContext) -> Settings:
        """The settings of a model that is to be loaded."""
        own = {name: value.string_value for name, value in context.config.parameters.items()}
        return cls(context.model_name, own, context.backend_config)

    def of_server(self) -> Settings:
        """Those of the command line alone, which are for all models."""
        return Settings(self.model, {}, self.server)

    def of_model(self) -> Settings:
        """Those of the model alone."""
        return Settings(self.model, self.own, {})

    def given(self) -> dict[str, str]:
        """All that are written, by name."""
        return {name: text.strip() for name, text in {**self.server, **self.own}.items() if text.strip()}

    def text(self, name: str, default: str = "") -> str:
        """A setting as it is written; the default if it is not."""
        return self.own.get(name, "").strip() or self.server.get(name, "").strip() or default

    def number(self, name: str, default: int, *, least: int | None = 0) -> int:
        """A whole number of at least `least`."""
        text = self.text(name)
        if not text:
            return default
        wanted = "a whole number" if least is None else f"a whole number from {least} up"
        try:
            value = int(text)
        except ValueError:
            raise self.wrong(name, wanted) from None
        if least is not None and value < least:
            raise self.wrong(name, wanted)
        return value

    def fraction(self, name: str, default: float = 0.0) -> float:
        """A number from 0 to 1."""
        try:
            value = float(self.text(name, str(default)))
        except ValueError:
            value = -1.0
        if not 0 <= value <= 1:
            raise self.wrong(name, "a number from 0 to 1")
        return value

    def flag(self, name: str, default: bool = False) -> bool:
        """A switch: true, yes, on or 1, false, no, off or 0, in any case."""
        value = self.switch(name)
        return default if value is None else value

    def switch(self, name: str) -> bool | None:
        """As `flag`, and None if it is not written."""
        text = self.text(name).lower()
        if text and text not in SWITCH_WORDS:
            raise self.wrong(name, "true or false")
        return SWITCH_WORDS[text] if text else None

    def choice(self, name: str, choices: Iterable[str], default: str) -> str:
        """One of some words."""
        known = list(choices)
        text = self.text(name, default)
        if text not in known:
            raise self.wrong(name, f"one of {', '.join(known)}")
        return text

    def wrong(self, name: str, wanted: str) -> ConfigError:
        """The fault of a setting that is not what it should be."""
        return self.fault(name, f"'{self.text(name)}' is not {wanted}", f"write {wanted}")

    def fault(self, name: str, message: str, advice: str) -> ConfigError:
        """Something wrong with what a setting says."""
        origin = "parameters" if name in self.own or name not in self.server else "--backend-config"
        return ConfigError([Fault(message, field=f"{origin}.{name}", advice=advice)], self.model)


def threads_for_each(context: LoadContext) -> int:
    """How many threads an instance on the CPU should have if nobody says: the process's cores, divided among them."""
    on_cpu = sum(placement.kind is not InstanceKind.KIND_GPU for placement in context.placements)
    return max(1, available_cores() // max(1, on_cpu))


def available_cores() -> int:
    """The cores that this process may use; where the system does not tell (macOS, Windows), those of the machine."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
