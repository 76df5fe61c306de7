"""Label files: the names of the classes of an output, one a line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from moorage.config.schema import ModelConfig
from moorage.errors import ConfigError, Fault


def read_labels(config: ModelConfig, model_path: Path | None) -> Mapping[str, Sequence[str]]:
    """Output name to labels, for the outputs with a `label_filename`. Raises ConfigError naming output and file."""
    labels: dict[str, Sequence[str]] = {}
    for index, output in enumerate(config.output):
        if output.label_filename:
            labels[output.name] = _read(output.label_filename, model_path, config.name, f"output[{index}].label_filename")
    return labels


def _read(filename: str, model_path: Path | None, model: str, field: str) -> Sequence[str]:
    if model_path is None:
        raise ConfigError([Fault(f"label file '{filename}' has no folder to be in", field=field)], model)
    path = model_path / filename
    if not path.resolve().is_relative_to(model_path.resolve()):
        raise ConfigError([Fault(f"label file '{filename}' is outside the model's folder", field=field)], model)
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        advice = f"put the file into {model_path}, or take label_filename out of the configuration"
        raise ConfigError(
            [Fault(f"label file '{filename}' cannot be read: {error}", field=field, advice=advice)], model
        ) from error
