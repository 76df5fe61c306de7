"""Which file holds a model's configuration, and what it says."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve, frozen

from moorage import config as configs
from moorage._repository.layout import CONFIG_FILES, CONFIG_FOLDER
from moorage._repository.scan import ModelFolder
from moorage._storage import Copies
from moorage.config.parsed import ParsedConfig
from moorage.errors import ConfigError, Fault
from moorage.storage import Entry

_LARGEST = 4 << 20
"""Bytes of a configuration. A larger file is something else, which would keep the server busy for a long time."""


@frozen
class ConfigSource:
    """A configuration before it is parsed; `content` is text format unless `json`."""

    content: bytes = b""
    file: str = ""
    json: bool = False


def find(model: ModelFolder, config_name: str = "") -> str | None:
    """The path, below the model's folder, of its configuration, or None.

    `config_name` picks a file in the folder `configs`; where a model has none by that name, the default one counts. Raises
    ConfigError if a text and a JSON file are both there.
    """
    files = model.folder.files()
    custom = [f"{CONFIG_FOLDER}/{config_name}{ending}" for ending in (".pbtxt", ".json")] if config_name else []
    for choices in (custom, CONFIG_FILES):
        present = [path for path in choices if path in files]
        if len(present) > 1:
            fault = Fault(f"there are both {present[0]} and {present[1]}", _place(model, ""), advice="remove one of them")
            raise ConfigError([fault], model.id.name)
        if present:
            return present[0]
    return None


def read(model: ModelFolder, path: str, copies: Copies) -> ConfigSource:
    """The content of the configuration at `path`. Of a remote repository it is read only if it has changed since it was last.

    Raises StorageError, and ConfigError for what is too large to be one.
    """
    listed = next((entry for entry in model.folder.entries if entry.path == path), Entry(path, 0, ""))
    if listed.size > _LARGEST:
        message = f"it has {listed.size} bytes, a configuration may have {_LARGEST}"
        raise ConfigError([Fault(message, _place(model, path))], model.id.name)
    repository, place = model.repository, f"{model.folder.name}/{path}"
    content = copies.read(repository.storage, repository.url, listed._replace(path=place), lambda: repository.read(place))
    return ConfigSource(content, _place(model, path), path.endswith(".json"))


def parse(source: ConfigSource, name: str, variables: Mapping[str, str] | None = None) -> ParsedConfig:
    """The configuration, with the model's name filled in. Raises ConfigError, also if it names another model."""
    if source.json:
        parsed = configs.parse_json(source.content, file=source.file, model=name, variables=variables)
    else:
        parsed = configs.parse_text(source.content, file=source.file, model=name, variables=variables)
    if parsed.config.name not in ("", name):
        message = f"it is '{parsed.config.name}', but the model's folder is '{name}'"
        raise ConfigError([parsed.fault("name", message, f"write '{name}', or leave the line out")], name)
    return parsed.with_config(evolve(parsed.config, name=name))


def _place(model: ModelFolder, path: str) -> str:
    return f"{model.repository.url}/{model.folder.name}/{path}".rstrip("/")
