"""The credential file: the longest name counts, and nothing that is in it is ever shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.errors import StorageError
from moorage.storage.credentials import VARIABLE, best, stored

CHOICES = {"": "A", "s3://b2": "B", "s3://b2/deep": "C", "s3://b2/deep/er/": "D"}


@pytest.mark.parametrize(
    "url, choice",
    [
        ("s3://b2/deep/x", "C"),
        ("s3://b2/deep", "C"),
        ("s3://b2/deep/", "C"),
        ("s3://b2/deeper", "B"),
        ("s3://b2/deep/er/x", "D"),
        ("s3://b2/deep/er", "D"),
        ("s3://b2/x", "B"),
        ("s3://b2", "B"),
        ("s3://b22/x", "A"),
        ("s3://b3", "A"),
    ],
)
def test_the_longest_name_counts(url: str, choice: str) -> None:
    assert best(CHOICES, url) == choice


def test_any_of_a_url_s_forms_will_do() -> None:
    assert best(CHOICES, "s3://other", "s3://b2/deep") == "C"
    assert best({"s3://b2": "B"}, "s3://b3") is None
    assert best({}, "s3://b2") is None


parts = st.lists(st.sampled_from(["a", "b", "ab", "b-c"]), min_size=1, max_size=4).map("/".join)


@given(st.lists(parts, unique=True), parts)
def test_a_name_that_counts_is_a_whole_beginning(names: list[str], path: str) -> None:
    found = best({f"s3://{name}": name for name in names}, f"s3://{path}")
    fitting = [name for name in names if path.split("/")[: len(name.split("/"))] == name.split("/")]
    assert found == max(fitting, key=len, default=None)


def test_the_file_is_read_at_each_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "credentials.json"
    monkeypatch.setenv(VARIABLE, str(file))
    file.write_text(json.dumps({"s3": CHOICES, "gs": {"": "/key.json"}}))
    assert stored("s3", "s3://b2/x") == "B"
    assert stored("gs", "gs://b2") == "/key.json"
    assert stored("as", "as://account/container") is None
    file.write_text(json.dumps({"s3": {"": "new"}}))
    assert stored("s3", "s3://b2/x") == "new"


def test_without_the_variable_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert stored("s3", "s3://b2") is None


@pytest.mark.parametrize(
    "content, told",
    [
        ('{"s3": {"": {"secret_key": "hushhush",', "is not JSON"),
        ('["hushhush"]', 'should map "s3", "gs" or "as"'),
        ('{"s3": "hushhush"}', 'should map "s3", "gs" or "as"'),
        ("", "is not JSON"),
        ("\xff\xfe", "is not JSON"),
    ],
)
def test_a_file_that_is_none_is_named_and_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str, told: str
) -> None:
    file = tmp_path / "credentials.json"
    file.write_text(content, encoding="latin-1")
    monkeypatch.setenv(VARIABLE, str(file))
    with pytest.raises(StorageError) as caught:
        stored("s3", "s3://b2")
    message = str(caught.value)
    assert f"{VARIABLE} names {file}, which" in message
    assert told in message
    seen: BaseException | None = caught.value
    while seen is not None and not (seen.__suppress_context__ and seen.__cause__ is None):
        seen = seen.__cause__ or seen.__context__
        assert "hushhush" not in str(seen)


@pytest.mark.parametrize("missing", [True, False])
def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: bool) -> None:
    file = tmp_path / "credentials.json"
    if not missing:
        file.mkdir()
    monkeypatch.setenv(VARIABLE, str(file))
    with pytest.raises(StorageError, match=f"{VARIABLE} names {file}, which cannot be read: "):
        stored("s3", "s3://b2")
