"""Configurations in the protobuf text format (`config.pbtxt`): reading."""

from __future__ import annotations

from collections.abc import Mapping

from moorage.config.fields import model_config_spec
from moorage.config.parsed import ParsedConfig
from moorage.config.reader import Reader
from moorage.config.tokens import Positions, decode
from moorage.errors import ConfigError, Fault


def parse_text(
    text: str | bytes, *, file: str = "", model: str = "", variables: Mapping[str, str] | None = None
) -> ParsedConfig:
    """Read a configuration in text format.

    `file` and `model` are named in errors. `variables` are the values of template variables such as `${MAX_BATCH}`;
    without them such a variable is a fault, except inside quotes. Raises ConfigError with every fault, in the text's order.
    """
    source = decode(text, file, model) if isinstance(text, bytes) else text
    source = source.removeprefix("\ufeff")
    reader = Reader(source, variables)
    config = reader.read(model_config_spec())
    positions = Positions(source, reader.offsets)
    if reader.faults:
        raise ConfigError(_placed(reader, positions, file), model)
    given = frozenset(path for path in reader.offsets if "[" not in path and "." not in path)
    return ParsedConfig(config, file, positions, given)


def _placed(reader: Reader, positions: Positions, file: str) -> list[Fault]:
    faults = []
    for offset, path, message, advice in sorted(reader.faults, key=lambda one: one[0]):
        line, column = positions.at(offset)
        faults.append(Fault(message, file, line, column, path, advice))
    return faults
