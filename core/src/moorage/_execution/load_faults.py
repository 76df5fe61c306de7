"""What is added to the error of a failed load: the place in the configuration, and files that are not what they seem."""

from __future__ import annotations

from typing import Final

from attrs import evolve

from moorage.backend import VersionFiles
from moorage.config.parsed import ParsedConfig
from moorage.errors import ConfigError, Fault, InvalidArgument, ModelError, MoorageError

_PAGE: Final = "is a web page; what was downloaded is a page about the model or a login form, not the model"
_IMPOSTORS: Final = {
    b"version https://git-lfs": "is a Git LFS pointer, not the file itself; fetch the file with `git lfs pull`",
    b"<!doctype html": _PAGE,
    b"<html": _PAGE,
}
_LOOKED_AT: Final = 100
"""Files of a version that are looked at, at most."""
_PARAMETERS: Final = "parameters."


def explained(error: MoorageError, parsed: ParsedConfig, files: VersionFiles) -> MoorageError:
    """The error of a load, with what can be added to it; the same object if there is nothing."""
    if isinstance(error, ConfigError):
        faults = [_placed(fault, parsed) for fault in error.faults]
        return error if faults == list(error.faults) else ConfigError(faults, error.model)
    if type(error) not in (ModelError, InvalidArgument):
        return error
    found = _impostor(files)
    return type(error)(f"{error}; {found}") if found and "Git LFS" not in str(error) and "web page" not in str(error) else error


def _placed(fault: Fault, parsed: ParsedConfig) -> Fault:
    """The fault with file and line, if its field stands in the configuration file."""
    if fault.file or not fault.field:
        return fault
    path = fault.field
    if path.startswith(_PARAMETERS):
        path = f'parameters["{path.removeprefix(_PARAMETERS)}"].string_value'
        if path not in parsed.positions:
            return fault  # it comes from --backend-config
    place = parsed.fault(path, "")
    return evolve(fault, file=place.file, line=place.line, column=place.column) if place.line else fault


def _impostor(files: VersionFiles) -> str:
    """The first file of a version that is a pointer or a page, and what to do; empty if none is."""
    if files.path is None:
        return ""
    for name in sorted(files.names)[:_LOOKED_AT]:
        try:
            with (files.path / name).open("rb") as file:
                start = file.read(64).lstrip().lower()
        except OSError:
            continue
        for beginning, what in _IMPOSTORS.items():
            if start.startswith(beginning):
                return f"{name} {what}"
    return ""
