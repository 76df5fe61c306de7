"""From a listing to models: which folders are models, which of their folders are versions. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from attrs import evolve, field, frozen

from moorage.storage import Entry
from moorage.types import parse_version

CONFIG_FILES: Final = ("config.pbtxt", "config.json")
CONFIG_FOLDER: Final = "configs"
"""Holds configurations by other names, see `--model-config-name`."""
SUMS: Final = "SHA256SUMS"
"""Lists the files of the version in whose folder it lies, with their check sums."""

_NOT_MODELS: Final = frozenset(
    {"lost+found", "__MACOSX", "__pycache__", "@eaDir", "#recycle", "#snapshot", "$RECYCLE.BIN", "System Volume Information"}
)
"""Folders of file systems and tools."""
_NOT_VERSIONS: Final = frozenset({CONFIG_FOLDER, "warmup", "initial_state", "__MACOSX", "__pycache__"})
_TRANSIENT: Final = (".pyc", ".tmp", ".part", "~", ".swp", ".swx", ".swo", ".crdownload")


@frozen(eq=False)
class Folder:
    """A folder in a repository's root. Paths of `entries` are relative to it, in the order of their names.

    `skipped` maps each folder that looks as if it were meant for a version to the reason why it is none.
    """

    name: str
    entries: tuple[Entry, ...]
    versions: tuple[int, ...] = ()
    skipped: Mapping[str, str] = field(factory=dict)

    def files(self) -> frozenset[str]:
        """The paths of all files."""
        return frozenset(entry.path for entry in self.entries if not entry.is_dir)

    def without(self, versions: Collection[int]) -> Folder:
        """The folder as it would be if these versions were not there."""
        if not versions:
            return self
        names = {str(version) for version in versions}
        entries = tuple(entry for entry in self.entries if entry.path.partition("/")[0] not in names)
        return evolve(self, entries=entries, versions=tuple(v for v in self.versions if v not in versions))

    @property
    def configured(self) -> bool:
        """Whether there is a configuration by one of the default names."""
        return any(entry.path in CONFIG_FILES for entry in self.entries)


@frozen(eq=False)
class Layout:
    """What a repository holds. `mistake` is not empty if its path is that of a model, not of a repository."""

    folders: Mapping[str, Folder]
    mistake: str = ""


def read_layout(entries: Iterable[Entry]) -> Layout:
    """Sort a listing into models. Files in the root and the folders of tools and file systems are left out."""
    grouped: dict[str, list[Entry]] = {}
    root_files = set()
    for entry in entries:
        path, size, fingerprint, is_dir, checksum = entry
        head, slash, rest = path.partition("/")
        if not slash and not is_dir:
            root_files.add(path)
        else:
            group = grouped.get(head)
            if group is None:
                group = grouped[head] = []
            if rest or (is_dir and fingerprint):
                group.append(Entry(rest, size, fingerprint, is_dir, checksum))
    folders = {name: read_folder(name, grouped[name]) for name in sorted(grouped) if not _hidden(name)}
    return Layout(folders, _mistake(folders, root_files))


def _hidden(name: str) -> bool:
    return not name or name.startswith(".") or name in _NOT_MODELS


def read_folder(name: str, entries: list[Entry]) -> Folder:
    """A model's folder from its entries, whose paths are relative to it."""
    entries.sort()
    heads = set()
    for path, _, _, is_dir, _ in entries:
        head, slash, _ = path.partition("/")
        if slash or is_dir:
            heads.add(head)
    versions, skipped = _versions(heads)
    return Folder(name, tuple(entries), versions, skipped)


def _versions(names: set[str]) -> tuple[tuple[int, ...], dict[str, str]]:
    versions, skipped = [], {}
    for name in names:
        version = parse_version(name)
        if version is not None and str(version) == name:
            versions.append(version)
        elif name and not name.startswith(".") and name not in _NOT_VERSIONS:
            skipped[name] = _reason(name)
    return tuple(sorted(versions)), skipped


def _reason(name: str) -> str:
    if not (name.isascii() and name.isdigit()):
        return "it is not a whole number"
    return "it starts with a zero" if name.startswith("0") else "its number is too large"


def _mistake(folders: Mapping[str, Folder], root_files: set[str]) -> str:
    """Whether someone has given a model's folder for a repository, by what lies in it."""
    visible = [folder for folder in folders.values() if folder.name not in _NOT_VERSIONS]
    numbered = [folder for folder in visible if parse_version(folder.name) is not None]
    config = next((name for name in CONFIG_FILES if name in root_files), "")
    if len(numbered) != len(visible) or any(folder.configured or folder.versions for folder in visible):
        return ""
    if not config and not numbered:
        return ""
    holds = " and ".join(filter(None, (config, f"version folder '{numbered[0].name}'" if numbered else "")))
    return f"this looks like the folder of one model (it holds {holds}), not like a repository: give the folder above it"


def hidden_path(path: str) -> bool:
    """Whether a file is a tool's own: it, or a folder on the way to it, begins with a dot, or it is Python's byte code."""
    return path.startswith(".") or "/." in path or "__pycache__" in path


def transient(path: str) -> bool:
    """Whether a file comes and goes without a change to the model: hidden ones, editors' copies, unfinished uploads."""
    return path.endswith(_TRANSIENT) or hidden_path(path) or path.rpartition("/")[2].startswith("#")
