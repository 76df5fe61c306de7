"""Private folders: they go with their server, however that ends."""

from __future__ import annotations

import errno
import gc
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from moorage._storage import Scratch, mounted
from moorage.errors import InvalidArgument

HOLD = """
import sys
from pathlib import Path
from moorage._storage.scratch import Scratch
scratch = Scratch(Path(sys.argv[1]))
(scratch.folder("copy") / "model").write_text("weights")
print(scratch.path, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def another(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another server, which has said where its folder is."""
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


def told(process: subprocess.Popen[str]) -> Path:
    assert process.stdout is not None
    return Path(process.stdout.readline().strip())


def left(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_nothing_is_made_before_it_is_needed(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path)
    scratch.sweep()
    assert left(tmp_path) == []
    scratch.close()
    assert left(tmp_path) == []


def test_folders_are_new_and_private_and_go_with_it(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path)
    one, two = scratch.folder("copy"), scratch.folder("copy")
    (one / "deep").mkdir()
    (one / "deep" / "file").write_text("")
    assert one != two
    assert one.name.startswith("copy-")
    assert {scratch.path} == {one.parent, two.parent}
    if os.name == "posix":
        assert scratch.path.stat().st_mode & 0o077 == 0
    scratch.close()
    scratch.close()
    assert left(tmp_path) == []


def test_there_is_none_after_the_end(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path)
    scratch.close()
    with pytest.raises(OSError, match="ended"):
        scratch.folder("copy")


def test_one_that_is_forgotten_goes_too(tmp_path: Path) -> None:
    Scratch(tmp_path).folder("copy")
    gc.collect()
    assert left(tmp_path) == []


def test_it_is_below_the_folder_for_temporary_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    scratch = Scratch()
    assert scratch.path.parent == tmp_path
    scratch.close()


def test_those_of_living_servers_are_left_alone(tmp_path: Path, another: subprocess.Popen[str]) -> None:
    own, theirs = Scratch(tmp_path), told(another)
    copy = own.folder("copy")
    second = Scratch(tmp_path)
    assert own.sweep() == []
    assert second.sweep() == []
    assert copy.is_dir()
    assert theirs.is_dir()
    own.close()


def test_what_a_killed_server_has_left_is_removed(tmp_path: Path, another: subprocess.Popen[str]) -> None:
    theirs = told(another)
    another.kill()
    another.wait()
    assert theirs.is_dir()
    assert Scratch(tmp_path).sweep() == [theirs]
    assert left(tmp_path) == []


def test_one_that_ends_in_order_leaves_nothing(tmp_path: Path, another: subprocess.Popen[str]) -> None:
    assert told(another).is_dir()
    another.communicate("")
    assert left(tmp_path) == []


def test_a_child_that_was_forked_removes_nothing(tmp_path: Path) -> None:
    program = f"""
import os, sys
from pathlib import Path
from moorage._storage.scratch import Scratch
scratch = Scratch(Path({str(tmp_path)!r}))
scratch.folder("copy")
child = os.fork()
if child:
    os.waitpid(child, 0)
    print(scratch.path.is_dir())
else:
    sys.exit(0)
"""
    if not hasattr(os, "fork"):
        pytest.skip("there is no fork here")
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout == "True\n"


def test_what_cannot_be_removed_at_the_end_is_left_to_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scratch = Scratch(tmp_path)
    folder = scratch.folder("copy").parent
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", lambda *_, **__: None)
        scratch.close()
        assert Scratch(tmp_path).sweep() == []
    assert Scratch(tmp_path).sweep() == [folder]
    assert left(tmp_path) == []


def test_folders_without_a_lock_are_not_ours(tmp_path: Path) -> None:
    (tmp_path / "moorage-server-0123").mkdir()
    (tmp_path / "moorage-mine.lock").write_text("")
    assert Scratch(tmp_path).sweep() == []
    assert left(tmp_path) == ["moorage-mine.lock", "moorage-server-0123"]


def test_a_lock_without_a_folder_is_that_of_a_server_that_just_starts_unless_it_is_old(tmp_path: Path) -> None:
    young, old = tmp_path / "moorage-server-young.lock", tmp_path / "moorage-server-old.lock"
    for lock in (young, old):
        lock.write_text("")
    before = time.time() - 7200
    os.utime(old, (before, before))
    assert Scratch(tmp_path).sweep() == []
    assert left(tmp_path) == [young.name]


class TestMounted:
    def test_copies_go_there(self, tmp_path: Path) -> None:
        scratch = mounted("TRITON_AWS_MOUNT_DIRECTORY", str(tmp_path))
        assert scratch.folder("copy").is_relative_to(tmp_path)
        scratch.close()
        assert left(tmp_path) == []

    def test_what_a_killed_server_has_left_there_is_no_hindrance(self, tmp_path: Path, another: subprocess.Popen[str]) -> None:
        told(another)
        another.kill()
        another.wait()
        mounted("V", str(tmp_path)).close()
        assert left(tmp_path) == []

    def test_a_folder_that_is_not_there(self, tmp_path: Path) -> None:
        with pytest.raises(InvalidArgument, match=r"^TRITON_AWS_MOUNT_DIRECTORY=.*/nowhere: there is no such folder"):
            mounted("TRITON_AWS_MOUNT_DIRECTORY", str(tmp_path / "nowhere"))

    def test_a_file(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        with pytest.raises(InvalidArgument, match=r"^V=.*/file: there is no such folder"):
            mounted("V", str(tmp_path / "file"))

    def test_one_that_is_not_empty(self, tmp_path: Path) -> None:
        (tmp_path / "precious").write_text("")
        with pytest.raises(InvalidArgument, match=r"^V=.* must be empty, but holds 'precious'"):
            mounted("V", str(tmp_path))
        assert left(tmp_path) == ["precious"]

    def test_an_empty_disk_is_empty(self, tmp_path: Path) -> None:
        (tmp_path / "lost+found").mkdir()
        mounted("V", str(tmp_path))

    def test_one_of_another_server(self, tmp_path: Path) -> None:
        first = mounted("V", str(tmp_path))
        first.folder("copy")
        with pytest.raises(InvalidArgument, match="another server uses it"):
            mounted("V", str(tmp_path))
        first.close()

    def test_one_that_may_not_be_written(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(**where: str) -> None:
            raise PermissionError(errno.EACCES, "Permission denied")

        monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
        with pytest.raises(InvalidArgument, match=r"^V=.*: this user may not read and write it: Permission denied"):
            mounted("V", str(tmp_path))
