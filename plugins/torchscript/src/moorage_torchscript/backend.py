"""The backend: finds PyTorch, tells what a model file is, and loads it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

from moorage.backend import Backend, LoadContext, LoadedModel
from moorage.errors import ModelError, NotFound
from moorage_torchscript.compiled_model import CompiledModel
from moorage_torchscript.contents import Kind, NotAsFoundError, damaged_member, identify
from moorage_torchscript.exported_model import ExportedModel
from moorage_torchscript.operators import libraries
from moorage_torchscript.options import Options, options_of
from moorage_torchscript.runtime import INSTALL, ProcessSettings, import_torch
from moorage_torchscript.script_model import ScriptModel

DEFAULT_FILE = "model.pt"
ARCHIVE_FILE = "model.pt2"
ARCHIVE_PLATFORM = "torch_aoti"

_Loader = Callable[[Any, LoadContext, bytes, Options], LoadedModel]
_LOADERS: dict[Kind, _Loader] = {Kind.SCRIPT: ScriptModel, Kind.EXPORTED: ExportedModel, Kind.COMPILED: CompiledModel}


class TorchBackend(Backend):
    """Runs TorchScript models, programs of torch.export and packages of AOT Inductor, on the CPU or on NVIDIA GPUs."""

    name: ClassVar[str] = "pytorch"
    platforms = ("pytorch_libtorch", "libtorch", ARCHIVE_PLATFORM)
    default_model_filename = DEFAULT_FILE
    install_hint = INSTALL

    def __init__(self) -> None:
        self._process = ProcessSettings()

    def load(self, context: LoadContext) -> LoadedModel:
        """Read a model file as a whole, so that nothing that happens to it later matters, and make of it what it is."""
        content = read(context)
        found = identify(content)
        if found.kind is Kind.OTHER:
            raise ModelError(
                f"model '{context.model_name}' version {context.version}: {context.model_file} is {found.what}; {found.advice}"
            )
        refuse_damage(context, content)
        torch = import_torch(context.model_name)
        self._process.prepare(torch)
        libraries.load_for(torch, context)
        options = options_of(context, script=found.kind is Kind.SCRIPT)
        self._process.use_inter_op_threads(torch, options.inter_op_threads, context.model_name)
        return _LOADERS[found.kind](torch, context, content, options)


def refuse_damage(context: LoadContext, content: bytes) -> None:
    """Raises ModelError for an archive of which a part is not what it was when it was written."""
    try:
        damage = damaged_member(content)
    except NotAsFoundError as error:
        damage = str(error)
    if damage:
        where = f"model '{context.model_name}' version {context.version}"
        raise ModelError(f"{where}: {context.model_file} is damaged ({damage}); upload it again")


def read(context: LoadContext) -> bytes:
    """The content of the model file. Raises NotFound or ModelError that names it."""
    path: Path = context.model_file
    where = f"model '{context.model_name}' version {context.version}"
    if path.is_dir():
        raise ModelError(f"{where}: {path} is a folder; the backend 'pytorch' takes a file, {DEFAULT_FILE} or {ARCHIVE_FILE}")
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise NotFound(
            f"{where}: no file {path}; put {DEFAULT_FILE} or {ARCHIVE_FILE} there, or name the file in default_model_filename"
        ) from error
    except OSError as error:
        raise ModelError(f"{where}: {path} cannot be read: {error}") from error
