"""What control modes learn of the parts of a model, and loads that leave unfinished versions out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from moorage._repository import Repositories
from moorage.control import FoundModel, LoadOptions, ModelId, ModelParts

Write = Callable[[Mapping[str, str]], Path]
Make = Callable[..., Repositories]

FILES = {"r/m/config.pbtxt": 'backend: "python" version_policy: { all {} }', "r/m/1/model.py": "", "r/m/2/model.py": ""}


def parts(repositories: Repositories) -> ModelParts:
    return repositories.scan().public().models[ModelId("m")].parts()


@pytest.mark.parametrize(
    "path,changed",
    [
        ("1/model.py", {1}),
        ("2/deep/weights", {2}),
        ("1/SHA256SUMS", {1}),
        ("config.pbtxt", {"shared"}),
        ("labels.txt", {"shared"}),
        ("configs/big.pbtxt", {"shared"}),
        ("extra/1/model.py", {"shared"}),
        ("1/.model.py.swp", set()),
        ("1/__pycache__/model.pyc", set()),
    ],
)
def test_a_change_shows_in_its_part(write: Write, repositories: Make, path: str, changed: set[object]) -> None:
    write(FILES)
    before = parts(repositories())
    write({f"r/m/{path}": "something else"})
    after = parts(repositories())
    differs = {version for version in before.versions if before.versions[version] != after.versions[version]}
    assert differs | ({"shared"} if before.shared != after.shared else set()) == changed


def test_versions_come_and_go_without_a_change_to_the_others(write: Write, repositories: Make) -> None:
    write(FILES)
    before = parts(repositories())
    write({"r/m/3/": ""})
    after = parts(repositories())
    assert set(after.versions) == {1, 2, 3}
    assert (after.shared, after.versions[1]) == (before.shared, before.versions[1])


def test_versions_with_sums_are_told(write: Write, repositories: Make) -> None:
    write({**FILES, "r/m/2/SHA256SUMS": "", "r/m/1/SHA256SUMS/": "", "r/m/SHA256SUMS": ""})
    assert parts(repositories()).summed == {2}


def test_a_model_of_which_nothing_more_is_said_is_one_part() -> None:
    assert FoundModel(ModelId("m"), "/r", (1,), "mark").parts() == ModelParts("mark")


def test_an_unfinished_version_is_as_if_it_were_not_there(write: Write, repositories: Make) -> None:
    write(FILES)
    made = repositories()
    without = made.spec(made.scan(), ModelId("m"), LoadOptions(unfinished=frozenset({2})))
    assert set(without.versions) == {1}
    with_it = made.spec(made.scan(), ModelId("m"))
    assert set(with_it.versions) == {1, 2}
    assert with_it.versions[1].fingerprint == without.versions[1].fingerprint


def test_a_list_of_sums_that_is_added_later_loads_nothing_anew(write: Write, repositories: Make) -> None:
    write(FILES)
    made = repositories()
    before = made.spec(made.scan(), ModelId("m"))
    write({"r/m/1/SHA256SUMS": "x"})
    after = made.spec(made.scan(), ModelId("m"))
    assert [spec.fingerprint for spec in before.versions.values()] == [spec.fingerprint for spec in after.versions.values()]
