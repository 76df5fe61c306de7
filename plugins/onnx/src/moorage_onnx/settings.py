"""What a model's parameters and the server's `--backend-config` say, read as what they mean."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from attrs import field, frozen

from moorage.backend import LoadContext
from moorage.errors import ConfigError, Fault

WORDS = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}


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

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter({**self.server, **self.own}.items())

    def text(self, name: str, default: str = "") -> str:
        """A setting as it is written; the default if it is not, or empty."""
        return (self.own.get(name) or self.server.get(name) or default).strip()

    def number(self, name: str, default: int, *, least: int | None = 0) -> int:
        """A whole number of at least `least`. Raises ConfigError that names the setting."""
        text = self.text(name)
        if not text:
            return default
        wanted = "a whole number" if least is None else f"a whole number from {least} up"
        try:
            value = int(text)
        except ValueError:
            raise self.wrong(name, text, wanted) from None
        if least is not None and value < least:
            raise self.wrong(name, text, wanted)
        return value

    def flag(self, name: str, default: bool) -> bool:
        """A switch. Raises ConfigError that names the setting."""
        text = self.text(name)
        if not text:
            return default
        if text.lower() not in WORDS:
            raise self.wrong(name, text, "1 or 0")
        return WORDS[text.lower()]

    def choice(self, name: str, choices: Iterable[str], default: str) -> str:
        """One of some words. Raises ConfigError that lists them."""
        known = list(choices)
        text = self.text(name, default)
        if text not in known:
            raise self.wrong(name, text, f"one of {', '.join(known)}")
        return text

    def wrong(self, name: str, text: str, wanted: str) -> ConfigError:
        """The fault of a setting that is not what it should be."""
        origin = "parameters" if name in self.own else "--backend-config"
        fault = Fault(f"'{text}' is not {wanted}", field=f"{origin}.{name}", advice=f"write {wanted}")
        return ConfigError([fault], self.model)
