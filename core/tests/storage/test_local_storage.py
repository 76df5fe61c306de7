"""Listing, reading and copying local repositories."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from moorage._storage import LocalStorage
from moorage.errors import StorageError
from moorage.storage import UNREADABLE, Entry


def paths(url: Path | str) -> list[str]:
    return sorted(entry.path + ("/" if entry.is_dir else "") for entry in LocalStorage().list(str(url)))


def entry(root: Path, path: str) -> Entry:
    (found,) = (entry for entry in LocalStorage().list(str(root)) if entry.path == path)
    return found


def test_everything_is_listed_dot_files_too(tmp_path: Path) -> None:
    (tmp_path / "m" / "1").mkdir(parents=True)
    (tmp_path / "m" / "1" / ".keep").write_text("")
    (tmp_path / "m" / "config.pbtxt").write_text("x")
    (tmp_path / "readme").write_text("x")
    (tmp_path / "empty").mkdir()
    assert paths(tmp_path) == ["empty/", "m/", "m/1/", "m/1/.keep", "m/config.pbtxt", "readme"]
    assert paths(f"file://{tmp_path}") == paths(tmp_path)


def test_fingerprints_follow_the_content(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_text("one")
    first = entry(tmp_path, "f")
    assert first.size == 3
    assert entry(tmp_path, "f") == first
    os.utime(file, ns=(1, 1))
    touched = entry(tmp_path, "f")
    (tmp_path / "g").write_text("one")
    os.utime(tmp_path / "g", ns=(1, 1))
    (tmp_path / "g").replace(file)
    assert len({first.fingerprint, touched.fingerprint, entry(tmp_path, "f").fingerprint}) == 3


def test_links_are_followed(tmp_path: Path) -> None:
    (tmp_path / "store" / "1").mkdir(parents=True)
    (tmp_path / "store" / "1" / "model.py").write_text("x")
    repository = tmp_path / "repository"
    repository.mkdir()
    (repository / "m").symlink_to("../store")
    (repository / "twin").symlink_to("../store")
    (repository / "file").symlink_to("../store/1/model.py")
    (repository / "nowhere").symlink_to("gone")
    assert paths(repository) == ["file", "m/", "m/1/", "m/1/model.py", "twin/", "twin/1/", "twin/1/model.py"]


def test_links_in_a_circle_end(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name / "sub").mkdir(parents=True)
    (tmp_path / "a" / "self").symlink_to(".")
    (tmp_path / "a" / "sub" / "up").symlink_to("..")
    (tmp_path / "a" / "over").symlink_to("../b")
    (tmp_path / "b" / "back").symlink_to("../a")
    (tmp_path / "knot").symlink_to("knot")
    assert paths(tmp_path) == ["a/", "a/over/", "a/over/sub/", "a/sub/", "b/", "b/back/", "b/back/sub/", "b/sub/"]


@pytest.mark.parametrize("name, message", [("gone", "does not exist"), ("file", "is a file")])
def test_a_repository_that_is_none(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match=message) as caught:
        LocalStorage().list(str(tmp_path / name))
    assert str(tmp_path / name) in str(caught.value)


def refusing(bad: Path) -> Callable[[str], Any]:
    real = os.scandir

    def scandir(path: str) -> Any:
        if Path(path) == bad:
            raise PermissionError(13, "Permission denied", path)
        return real(path)

    return scandir


def test_a_repository_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "scandir", refusing(tmp_path))
    with pytest.raises(StorageError, match="permission denied"):
        LocalStorage().list(str(tmp_path))


def test_a_folder_that_may_not_be_read_is_marked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "f").write_text("")
    monkeypatch.setattr(os, "scandir", refusing(tmp_path / "a"))
    marked = [entry for entry in LocalStorage().list(str(tmp_path)) if entry.fingerprint.startswith(UNREADABLE)]
    assert marked == [Entry("a", 0, "unreadable: Permission denied", is_dir=True)]
    assert "b/f" in paths(tmp_path)


def test_a_folder_deleted_meanwhile_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").mkdir()
    real = os.scandir

    def scandir(path: str) -> Any:
        if path.endswith("a"):
            (tmp_path / "a").rmdir()
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    assert LocalStorage().list(str(tmp_path)) == (Entry("a", 0, "", is_dir=True),)


def test_read_and_download(tmp_path: Path) -> None:
    (tmp_path / "r" / "m" / "1").mkdir(parents=True)
    (tmp_path / "r" / "m" / "1" / "f").write_bytes(b"abc")
    (tmp_path / "out").mkdir()
    storage, url = LocalStorage(), str(tmp_path / "r")
    assert storage.read(url, "m/1/f") == b"abc"
    storage.download(url, [entry for entry in storage.list(url) if not entry.is_dir], tmp_path / "out")
    assert (tmp_path / "out" / "m" / "1" / "f").read_bytes() == b"abc"
    with pytest.raises(StorageError, match=r"cannot read .*/m/2: No such file"):
        storage.read(url, "m/2")
    with pytest.raises(StorageError, match=r"cannot copy .*/m/2 to"):
        storage.download(url, [Entry("m/2", 3, "")], tmp_path / "out")
    assert storage.local_path(url) == tmp_path / "r"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_what_would_never_end_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "zero").symlink_to("/dev/zero")
    (tmp_path / "file").write_text("x")
    kinds = {found.path: found.fingerprint for found in LocalStorage().list(str(tmp_path))}
    assert kinds["pipe"] == f"{UNREADABLE}it is a named pipe, not a file"
    assert kinds["zero"] == f"{UNREADABLE}it is a device, not a file"
    assert not kinds["file"].startswith(UNREADABLE)


@pytest.mark.skipif(os.name == "nt" or sys.platform == "darwin", reason="this system has no names that are not Unicode")
def test_names_that_are_no_text(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"old\xff") / "1").mkdir(parents=True)
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / os.fsdecode(b"r\xe9sum\xe9")).write_text("")
    (tmp_path / "größe").mkdir()
    listed = LocalStorage().list(str(tmp_path))
    assert sorted(found.path for found in listed) == ["größe", "m", "old\\xff"]
    (bad,) = (found for found in listed if found.path == "old\\xff")
    assert bad.is_dir
    assert bad.fingerprint == f"{UNREADABLE}its name is not UTF-8; rename it"
