"""Which folders are models, and which of their folders are versions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage._repository.fingerprint import of_folder, of_version
from moorage._repository.layout import Folder, Layout, hidden_path, read_layout, transient
from moorage.storage import Entry


def layout(*paths: str) -> Layout:
    """Of files, and of folders where a path ends with a slash."""
    return read_layout(Entry(path.rstrip("/"), 1, "" if path.endswith("/") else "f", path.endswith("/")) for path in paths)


def folder(*paths: str) -> Folder:
    return layout(*(f"m/{path}" for path in paths)).folders["m"]


@pytest.mark.parametrize(
    "name, reason",
    [
        ("01", "it starts with a zero"),
        ("00", "it starts with a zero"),
        ("v4", "it is not a whole number"),
        ("5x", "it is not a whole number"),
        ("-1", "it is not a whole number"),
        ("٣", "it is not a whole number"),
        ("9223372036854775808", "its number is too large"),
        ("9" * 40, "its number is too large"),
    ],
)
def test_folders_that_are_no_versions(name: str, reason: str) -> None:
    assert folder(f"{name}/model.py", "2/").skipped == {name: reason}
    assert folder(f"{name}/model.py", "2/").versions == (2,)


def test_versions_are_numbers_in_order() -> None:
    assert folder("10/a", "9/", "0/a", "9223372036854775807/", "2").versions == (0, 9, 10, 9223372036854775807)


def test_reserved_and_hidden_folders_are_passed_over_in_silence() -> None:
    found = folder("configs/a.pbtxt", "warmup/x", "initial_state/x", ".ipynb_checkpoints/x.py", "__pycache__/x.pyc", "1/a")
    assert (found.versions, found.skipped) == ((1,), {})


def test_the_root_holds_models_and_other_things() -> None:
    found = layout(
        "good/1/model.py", "README.md", "notes/", ".git/config", ".ipynb_checkpoints/x", "lost+found/", "__MACOSX/a", ".x.swp"
    )
    assert list(found.folders) == ["good", "notes"]
    assert found.mistake == ""


def test_a_file_in_a_version_makes_the_version_where_folders_are_not_listed() -> None:
    assert folder("1/.keep").versions == (1,)


def test_paths_with_empty_parts_are_left_out() -> None:
    assert layout("m/", "m/1/model.py", "/x/1/model.py").folders["m"].versions == (1,)
    assert list(layout("/x/1/model.py").folders) == []


def test_a_marker_file_of_a_folder_is_a_folder() -> None:
    found = read_layout([Entry("m/", 0, "etag"), Entry("m/1/", 0, "etag")]).folders["m"]
    assert (found.versions, found.entries) == ((1,), (Entry("1/", 0, "etag"),))


@pytest.mark.parametrize(
    "paths, holds",
    [
        (("config.pbtxt", "1/model.py"), "config.pbtxt and version folder '1'"),
        (("config.json",), "config.json"),
        (("config.pbtxt", "1/", "configs/x.pbtxt", ".git/x"), "config.pbtxt and version folder '1'"),
        (("3/model.onnx",), "version folder '3'"),
    ],
)
def test_a_model_folder_given_for_a_repository(paths: tuple[str, ...], holds: str) -> None:
    mistake = layout(*paths).mistake
    assert f"it holds {holds}" in mistake
    assert "give the folder above it" in mistake


@pytest.mark.parametrize(
    "paths",
    [(), ("readme",), ("config.pbtxt", "m/1/model.py"), ("1/1/model.py",), ("1/config.pbtxt",), ("notes/",), ("1/x", "m/")],
)
def test_repositories_that_look_a_little_like_a_model(paths: tuple[str, ...]) -> None:
    assert layout(*paths).mistake == ""


@pytest.mark.parametrize(
    "path, is_hidden, is_transient",
    [
        ("1/model.py", False, False),
        ("1/model.savedmodel/variables/v.index", False, False),
        (".model.py.swp", True, True),
        ("1/.x/y", True, True),
        ("1/__pycache__/model.cpython-311.pyc", True, True),
        ("1/model.pyc", False, True),
        ("1/model.onnx.tmp", False, True),
        ("1/model.onnx.part", False, True),
        ("config.pbtxt~", False, True),
        ("1/#model.py#", False, True),
    ],
)
def test_files_that_are_no_change(path: str, is_hidden: bool, is_transient: bool) -> None:
    assert (hidden_path(path), transient(path)) == (is_hidden, is_transient)


BASE = {"config.pbtxt": "c", "labels.txt": "l", "1/model.py": "a", "1/sub/w": "w", "2/model.py": "b", "configs/x.pbtxt": "x"}


def changed(path: str, content: str = "new") -> Folder:
    files = {**BASE, path: content}
    return read_layout(Entry(f"m/{name}", 1, text) for name, text in files.items()).folders["m"]


@pytest.mark.parametrize(
    "path, whole, first, second",
    [
        ("1/model.py", True, True, False),
        ("1/sub/w", True, True, False),
        ("1/more", True, True, False),
        ("2/model.py", True, False, True),
        ("3/model.py", True, False, False),
        ("labels.txt", True, True, True),
        ("warmup/data", True, True, True),
        ("config.pbtxt", True, False, False),
        ("configs/x.pbtxt", True, False, False),
        ("1/.model.py.swp", False, False, False),
        ("1/__pycache__/model.pyc", False, False, False),
        ("1/model.onnx.part", False, False, False),
    ],
)
def test_what_changes_a_fingerprint(path: str, whole: bool, first: bool, second: bool) -> None:
    before, after = changed("labels.txt", "l"), changed(path)
    assert (of_folder(before) != of_folder(after)) is whole
    assert (of_version(before, 1, b"") != of_version(after, 1, b"")) is first
    assert (of_version(before, 2, b"") != of_version(after, 2, b"")) is second


def test_the_configuration_counts_by_its_content() -> None:
    assert of_version(changed("a"), 1, b"x") != of_version(changed("a"), 1, b"y")


def test_an_empty_version_folder_changes_the_model() -> None:
    assert of_folder(folder("1/a")) != of_folder(folder("1/a", "2/"))


SEGMENT = st.sampled_from(["1", "01", "m", ".git", "configs", "config.pbtxt", "lost+found", "x y"])


@given(st.lists(st.tuples(st.lists(SEGMENT, min_size=1, max_size=4), st.booleans())), st.randoms(use_true_random=False))
def test_the_order_of_a_listing_does_not_matter(parts: list[tuple[list[str], bool]], random: object) -> None:
    entries = list({Entry("/".join(path), 1, "" if is_dir else "f", is_dir) for path, is_dir in parts})
    shuffled = entries.copy()
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    one, other = read_layout(entries), read_layout(shuffled)
    assert one.mistake == other.mistake
    assert {name: (of_folder(f), f.versions, f.skipped) for name, f in one.folders.items()} == {
        name: (of_folder(f), f.versions, f.skipped) for name, f in other.folders.items()
    }
    for found in one.folders.values():
        assert not set(map(str, found.versions)) & set(found.skipped)
