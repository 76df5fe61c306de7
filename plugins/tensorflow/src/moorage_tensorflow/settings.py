"""What a model's parameters and the server's `--backend-config` say, read as what they mean."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

from moorage.backend import LoadContext
from moorage.errors import ConfigError, Fault

_WORDS = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}


@frozen
class Settings:
    """The model's own parameters over the server's settings for this backend. Faults name the model and the setting."""

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

    def text(self, name: str, default: str = "") -> str:
        """A setting as it is written; the default if it is not, or empty."""
        return (self.own.get(name) or self.server.get(name) or default).strip()

    def number(self, name: str, default: int | None, *, least: int | None = None) -> int | None:
        """A whole number, of at least `least`. Raises ConfigError that names the setting."""
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

    def fraction(self, name: str) -> float:
        """A number from 0 (the default) to 1. Raises ConfigError that names the setting."""
        try:
            value = float(self.text(name, "0"))
        except ValueError:
            value = -1
        if not 0 <= value <= 1:
            raise self.wrong(name, "a number from 0 to 1")
        return value

    def flag(self, name: str, default: bool) -> bool:
        """A switch. Raises ConfigError that names the setting."""
        text = self.text(name).lower()
        if text and text not in _WORDS:
            raise self.wrong(name, "1 or 0")
        return _WORDS[text] if text else default

    def wrong(self, name: str, wanted: str) -> ConfigError:
        """The fault of a setting that is not what it should be."""
        return self.fault(name, f"'{self.text(name)}' is not {wanted}", f"write {wanted}")

    def fault(self, name: str, message: str, advice: str) -> ConfigError:
        """Something wrong with what a setting says."""
        origin = "parameters" if name in self.own or name not in self.server else "--backend-config"
        return ConfigError([Fault(message, field=f"{origin}.{name}", advice=advice)], self.model)
