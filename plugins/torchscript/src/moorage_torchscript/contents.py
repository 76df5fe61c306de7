"""What a model file is, told from its bytes. Nothing is unpickled and PyTorch is not needed."""

from __future__ import annotations

import enum
import io
import zipfile
import zlib
from collections.abc import Iterable
from typing import Final

from attrs import frozen

from moorage_torchscript.pickles import BrokenPickleError, imports, is_plain

EXPORT: Final = 'torch.export.save(torch.export.export(model, example_inputs), "model.pt2")'
SCRIPT: Final = 'torch.jit.script(model).save("model.pt")'
_REMAKE: Final = f"where the model's class is at hand, write {EXPORT} (or {SCRIPT}) and put that file here"


class Kind(enum.Enum):
    """What this plugin can serve, and everything else."""

    SCRIPT = "a TorchScript model"
    EXPORTED = "a program of torch.export"
    COMPILED = "a program compiled by AOT Inductor"
    OTHER = "something else"


@frozen
class Contents:
    """`what` says in words what the file is; `advice` what to do about it if this plugin cannot serve it."""

    kind: Kind
    what: str
    advice: str = ""


class NotAsFoundError(ValueError):
    """A ZIP archive that cannot be read."""


def identify(data: bytes) -> Contents:
    """Tell what a model file is. Any bytes get an answer."""
    if data.startswith(b"PK"):
        return _in_archive(data)
    known = _known(data)
    return Contents(Kind.OTHER, *known) if known else _pickled(data, "a pickle")


def _known(data: bytes) -> tuple[str, str] | None:
    """What a file is that is told by how it begins, and what to do about it."""
    if not data:
        return "an empty file", "upload it again"
    if data[0] == 8 and data[1:3].endswith(b"\x12") and data[1] < 32:
        return "an ONNX model", 'call it model.onnx and write backend: "onnxruntime"'
    if data[257:262] == b"ustar":
        return "a tar archive, as PyTorch before 0.4 wrote them", f"load it with torch.load once; {_REMAKE}"
    if data.lstrip()[:1] == b"<":
        return "a web page", "what was downloaded is a page about the model or a login form, not the model"
    return next(((what, advice) for begin, what, advice in _STARTS if data.startswith(begin)), None)


_STARTS: Final = (
    (b"version https://git-lfs", "a Git LFS pointer, not the file itself", "fetch the file with `git lfs pull`"),
    (b"\x1f\x8b", "a gzip archive", "unpack it and put what is inside here"),
    (b"\x28\xb5\x2f\xfd", "a zstd archive", "unpack it and put what is inside here"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", "unpack it and put what is inside here"),
    (b"\x89HDF", "an HDF5 file (Keras weights are such)", "a Keras model is served as a SavedModel: model.export(...)"),
    (b"GGUF", "a GGUF file of llama.cpp", "this server has no backend for it"),
    (b"ftrt", "a TensorRT engine", 'call it model.plan and write backend: "tensorrt"'),
    (b"ptrt", "a TensorRT engine", 'call it model.plan and write backend: "tensorrt"'),
)


def archive(data: bytes) -> zipfile.ZipFile:
    """A ZIP archive in memory. Raises NotAsFoundError if its table of contents is missing or broken."""
    try:
        return zipfile.ZipFile(io.BytesIO(data))
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError, UnicodeError, OverflowError, RecursionError) as error:
        raise NotAsFoundError(str(error)) from error


def member(content: zipfile.ZipFile, name: str | zipfile.ZipInfo) -> bytes:
    """A file in an archive. Raises NotAsFoundError if it is broken."""
    try:
        return content.read(name)
    except (zipfile.BadZipFile, zlib.error, ValueError, OSError, EOFError, NotImplementedError, RuntimeError) as error:
        raise NotAsFoundError(str(error)) from error


def damaged_member(data: bytes) -> str:
    """The first file of an archive whose content has not the check sum that goes with it; "" if all have.

    PyTorch does not look at check sums: weights that were changed on their way would be served.
    """
    try:
        return archive(data).testzip() or ""
    except NotAsFoundError:
        raise
    except Exception as error:
        raise NotAsFoundError(str(error)) from error


def _other(what: str, advice: str) -> Contents:
    return Contents(Kind.OTHER, what, advice)


def _in_archive(data: bytes) -> Contents:
    try:
        content = archive(data)
    except NotAsFoundError as error:
        return _other(f"the beginning of a ZIP archive that is cut off or damaged ({error})", "upload it again, as a whole")
    names = [name.partition("/")[2] for name in content.namelist()]
    whole = content.namelist()
    if "constants.pkl" in names and any(name.startswith("code/") for name in names):
        return Contents(Kind.SCRIPT, "a TorchScript model")
    if any(name.startswith("data/aotinductor/") for name in names):
        return Contents(Kind.COMPILED, "a program compiled by AOT Inductor")
    if any(name.startswith("models/") for name in names) or "serialized_exported_program.json" in whole:
        return Contents(Kind.EXPORTED, "a program of torch.export")
    return _other_archive(content, names, whole)


def _other_archive(content: zipfile.ZipFile, names: Iterable[str], whole: Iterable[str]) -> Contents:
    if "data.pkl" in names:
        path = next(name for name in whole if name.partition("/")[2] == "data.pkl")
        try:
            return _pickled(member(content, path), "a file of torch.save")
        except NotAsFoundError as error:
            return _other(f"a damaged file of torch.save ({error})", "upload it again")
    if "MAR-INF/MANIFEST.json" in whole:
        return _other("an archive of TorchServe (.mar)", "unpack it; if it holds a TorchScript file, put that here as model.pt")
    if "bytecode.pkl" in names:
        return _other(
            "a model for PyTorch Mobile, without code that a server can run", f"write {SCRIPT} from the original model"
        )
    listed = ", ".join(list(whole)[:3]) or "nothing"
    return _other(f"a ZIP archive of something else (it holds {listed})", _REMAKE)


def _pickled(data: bytes, form: str) -> Contents:
    """What is in a pickle, by the classes that it names."""
    try:
        found = imports(_without_header(data))
    except BrokenPickleError:
        if form == "a pickle" and not data.startswith(b"\x80"):
            return _other(f"no PyTorch file at all (it begins with {data[:8]!r})", _REMAKE)
        return _other(f"{form} that is cut off or damaged", "upload it again, as a whole")
    classes = sorted(f"{module}.{name}" for module, name in found if not is_plain((module, name)))
    legacy = f"{form} in PyTorch's old format" if data.startswith(_LEGACY) else form
    if classes:
        listed = ", ".join(classes[:3]) + (", …" if len(classes) > 3 else "")
        what = f"{legacy} that holds Python objects ({listed}), a pickled model or checkpoint, not TorchScript"
        return _other(what, f"unpickling runs code, so it is not loaded; {_REMAKE}")
    what = f"{legacy} that holds tensors alone: weights (a state_dict) without the model's code"
    return _other(what, f"build the model, call model.load_state_dict(...) and model.eval(); then {_REMAKE}")


_LEGACY: Final = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19."


def _without_header(data: bytes) -> bytes:
    """The pickle of the object itself: PyTorch's old format has three small ones before it."""
    if not data.startswith(_LEGACY):
        return data
    for _ in range(2):
        data = data[_end(data) :]
    return data[_end(data) :]


def _end(data: bytes) -> int:
    """Where the first pickle of some ends."""
    import pickletools  # noqa: PLC0415 (needed for old files only)

    try:
        return next(place + 1 for opcode, _, place in pickletools.genops(data) if opcode.name == "STOP" and place is not None)
    except Exception as error:
        raise BrokenPickleError(str(error)) from error
