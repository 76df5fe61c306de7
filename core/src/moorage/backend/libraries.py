"""Libraries with operators of the user's own, which `model_operations { op_library_filename }` names."""

from __future__ import annotations

from pathlib import Path

from attrs import frozen

from moorage.backend.contract import LoadContext
from moorage.errors import ConfigError, Fault


@frozen
class OperatorLibrary:
    """A library as the configuration names it, and where it lies: with the model, or elsewhere on this machine."""

    model: str
    name: str
    field: str
    path: Path

    def fault(self, message: str, advice: str) -> ConfigError:
        """Something wrong with this library."""
        return ConfigError([Fault(f"'{self.name}' {message}", field=self.field, advice=advice)], self.model)


def operator_libraries(context: LoadContext) -> list[OperatorLibrary]:
    """The libraries of a model, in the order of its configuration. Raises ConfigError for one that is not there.

    Names are absolute paths, or paths below the version's folder, the model's folder or, as in Triton, the working directory.
    """
    operations = context.config.model_operations
    return [_found(context, index, name) for index, name in enumerate(operations.op_library_filename if operations else ())]


def _found(context: LoadContext, index: int, name: str) -> OperatorLibrary:
    field = f"model_operations.op_library_filename[{index}]"
    for folder in (context.version_path, context.model_path, Path.cwd()):
        if (folder / name).is_file():
            return OperatorLibrary(context.model_name, name, field, folder / name)
    advice = f"put it into {context.model_path}, or write its absolute path"
    raise ConfigError([Fault(f"there is no library '{name}'", field=field, advice=advice)], context.model_name)
