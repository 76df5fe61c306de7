"""One look at the repositories."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest
from attrs import evolve

from moorage._plugins import Registry
from moorage._repository import Repositories
from moorage._storage import LocalStorage
from moorage.control import ModelId
from moorage.errors import Code, InvalidArgument, NotFound, StorageError
from moorage.storage import UNREADABLE, Entry

Write = Callable[[Mapping[str, str]], Path]
Make = Callable[..., Repositories]


class Counting(LocalStorage):
    """Lists what the test says, counts, and reads nothing."""

    schemes: ClassVar[Sequence[str]] = ("fake",)
    listings: ClassVar[dict[str, Any]] = {}
    calls: ClassVar[list[str]] = []

    def list(self, url: str) -> tuple[Entry, ...]:
        self.calls.append(url)
        answer = self.listings[url]
        if isinstance(answer, Exception):
            raise answer
        return tuple(answer)

    def read(self, url: str, path: str) -> bytes:
        raise KeyError(path)


@pytest.fixture
def fake(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Repositories]:
    """Repositories with made-up listings, by URL."""

    def make(**listings: object) -> Repositories:
        monkeypatch.setattr(Counting, "listings", {f"fake://{name}": listing for name, listing in listings.items()})
        monkeypatch.setattr(Counting, "calls", [])
        return Repositories(tuple(Counting.listings), evolve(registry, storages={"fake": Counting}))

    return make


def test_a_plain_repository(write: Write, repositories: Make) -> None:
    write({"r/m/config.pbtxt": "", "r/m/1/model.py": "", "r/m/3/": "", "r/n/2/model.py": "", "r/README": ""})
    snapshot = repositories().scan().public()
    assert {key.name: model.versions for key, model in snapshot.models.items()} == {"m": (1, 3), "n": (2,)}
    assert [model.problem for model in snapshot.models.values()] == [None, None]
    assert snapshot.unreadable == {}


def test_one_listing_a_repository_and_no_read(fake: Make) -> None:
    files = [Entry(f"m{n}/{path}", 1, "f") for n in range(10) for path in ("config.pbtxt", "1/model.py")]
    repositories = fake(one=files, two=[])
    assert len(repositories.scan().public().models) == 10
    assert sorted(Counting.calls) == ["fake://one", "fake://two"]


def test_nothing_changes_without_a_change(write: Write, repositories: Make) -> None:
    root = write({"r/m/1/model.py": "a", "r/n/1/model.py": "a"})
    first = repositories().scan().public()
    assert repositories().scan().public() == first
    (root / "r/m/1/model.py").write_text("bb")
    (root / "r/n/1/.model.py.swp").write_text("bb")
    second = repositories().scan().public()
    changed = [key.name for key in first.models if first.models[key].fingerprint != second.models[key].fingerprint]
    assert changed == ["m"]


def test_a_folder_that_is_no_model_is_listed_with_what_to_do(write: Write, repositories: Make) -> None:
    write({"r/good/1/model.py": "", "r/notes/readme.txt": "", "r/old/01/model.py": ""})
    models = repositories().scan().public().models
    assert models[ModelId("good")].problem is None
    notes, old = models[ModelId("notes")].problem, models[ModelId("old")].problem
    assert notes is not None
    assert "neither a configuration nor a version folder" in notes.message
    assert "'notes/1/'" in notes.message
    assert old is not None
    assert "'01' was skipped, it starts with a zero (rename '01' to '1')" in old.message


def test_a_duplicate_is_a_problem_of_that_model_alone(write: Write, repositories: Make) -> None:
    write({f"{repository}/{path}": "" for repository in "abc" for path in ("m/1/model.py", f"own_{repository}/1/model.py")})
    models = repositories("a", "b", "c").scan().public().models
    assert sorted(key.name for key, model in models.items() if model.problem is None) == ["own_a", "own_b", "own_c"]
    duplicate = models[ModelId("m")]
    assert duplicate.versions == ()
    assert duplicate.problem is not None
    assert duplicate.problem.code is Code.INVALID_ARGUMENT
    for repository in "abc":
        assert f"/{repository}" in duplicate.problem.message


def test_namespaces_keep_duplicates_apart(write: Write, repositories: Make, tmp_path: Path) -> None:
    write({"a/m/1/model.py": "", "b/m/2/model.py": ""})
    snapshot = repositories("a", "b", namespacing=True).scan().public()
    found = {(model.id.namespace, model.versions, model.problem) for model in snapshot.named("m")}
    assert found == {(str(tmp_path / "a"), (1,), None), (str(tmp_path / "b"), (2,), None)}


def test_a_repository_given_twice_is_one(write: Write, registry: Registry) -> None:
    root = write({"r/m/1/model.py": ""})
    repositories = Repositories([f"{root}/r", f"{root}/r/"], registry)
    assert repositories.urls == (f"{root}/r",)
    assert repositories.scan().models[ModelId("m")].problem is None


def test_an_unreadable_repository_hides_no_other(write: Write, repositories: Make, tmp_path: Path) -> None:
    write({"r/m/1/model.py": ""})
    snapshot = repositories("gone", "r").scan().public()
    assert [key.name for key in snapshot.models] == ["m"]
    assert list(snapshot.unreadable) == [str(tmp_path / "gone")]
    assert "does not exist" in snapshot.unreadable[str(tmp_path / "gone")].message


def test_a_storage_that_fails_in_its_own_way_is_unreadable_too(fake: Make) -> None:
    snapshot = fake(bad=ConnectionError("no route"), good=[Entry("m/1/a", 1, "f")]).scan()
    assert "Counting failed: ConnectionError: no route" in str(snapshot.unreadable["fake://bad"])
    assert list(snapshot.models) == [ModelId("m")]


def test_a_storage_that_cannot_read_fails_the_model(fake: Make) -> None:
    repositories = fake(r=[Entry("m/1/a", 1, "f"), Entry("m/config.pbtxt", 1, "f")])
    with pytest.raises(StorageError, match="fake://r: Counting failed: KeyError"):
        repositories.spec(repositories.scan(), ModelId("m"))


def test_a_model_folder_given_for_a_repository(write: Write, repositories: Make, tmp_path: Path) -> None:
    write({"r/m/config.pbtxt": "", "r/m/1/model.py": ""})
    snapshot = repositories("r/m").scan().public()
    assert snapshot.models == {}
    assert "looks like the folder of one model" in snapshot.unreadable[str(tmp_path / "r/m")].message


@pytest.mark.parametrize("path, problem", [("m", True), ("m/1", True), ("m/.git", False), ("lost+found", False)])
def test_an_unreadable_folder_concerns_its_model_alone(fake: Make, path: str, problem: bool) -> None:
    good = [Entry("n/1/a", 1, "f"), Entry("m/1/a", 1, "f")]
    snapshot = fake(r=[*good, Entry(path, 0, f"{UNREADABLE}Permission denied", is_dir=True)]).scan().public()
    assert snapshot.models[ModelId("n")].problem is None
    found = snapshot.models[ModelId("m")].problem
    assert (found is not None) is problem
    if found is not None:
        assert found.message == f"model 'm': cannot read fake://r/{path}: Permission denied"
        assert found.code is Code.INTERNAL


def test_an_unknown_scheme_says_what_there_is(registry: Registry) -> None:
    with pytest.raises(NotFound, match="storage scheme 'oss': installed are: file"):
        Repositories(["oss://b/p"], registry)


def test_an_empty_url_is_refused(registry: Registry) -> None:
    with pytest.raises(InvalidArgument):
        Repositories([""], registry)
