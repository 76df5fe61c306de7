"""What URLs mean, and what those are told that mean nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.errors import InvalidArgument
from moorage_gcs.urls import Address, parse

NAMES = st.text(st.characters(codec="utf-8", exclude_characters="/*[]"), min_size=1, max_size=12)
BUCKETS = st.from_regex(r"[a-z0-9][a-z0-9._-]{1,30}[a-z0-9]", fullmatch=True).filter(lambda name: "google" not in name)


@pytest.mark.parametrize(
    "url, bucket, prefix",
    [
        ("gs://bkt", "bkt", ""),
        ("gs://bkt/", "bkt", ""),
        ("gcs://bkt/models", "bkt", "models"),
        ("gs://my_bkt.example.com/a/b/c", "my_bkt.example.com", "a/b/c"),
        ("gs:///bkt/x//y/", "bkt", "x/y"),
        ("gs://bkt/date=2024-01-01/my models", "bkt", "date=2024-01-01/my models"),
        ("gs://bkt/100%25/what?#here", "bkt", "100%25/what?#here"),
    ],
)
def test_what_a_url_means(url: str, bucket: str, prefix: str) -> None:
    assert parse(url) == Address(bucket, prefix)
    assert parse(url).root == (f"{bucket}/{prefix}" if prefix else bucket)


@pytest.mark.parametrize(
    "url, advice",
    [
        ("gs://Bkt/models", "write gs://bkt/models"),
        ("gs://BKT", "small letters: write gs://bkt"),
        ("gs://b", "3 or more small letters"),
        ("gs://bkt!/x", "3 or more small letters"),
        ("gs://", "cannot be the name of a bucket"),
        ("gs://127.0.0.1:4443/bkt/models", "STORAGE_EMULATOR_HOST"),
        ("gs://https://127.0.0.1:4443/bkt/models", "STORAGE_EMULATOR_HOST"),
        ("gs://gs://bkt/models", "write gs://bkt/models"),
        ("gs://https://storage.googleapis.com/bkt/models", "write gs://bkt/models"),
        ("gs://storage.cloud.google.com/bkt/models", "write gs://bkt/models"),
        ("gs://console.cloud.google.com/storage/browser/bkt/models", "write gs://bkt/models"),
        ("gs://bkt/models/*", "wildcards"),
    ],
)
def test_what_cannot_be_meant(url: str, advice: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        parse(url)
    assert f"'{url}'" in str(caught.value)
    assert advice in str(caught.value)


@given(BUCKETS, st.lists(NAMES, max_size=4), st.integers(1, 3))
def test_slashes_too_many_change_nothing(bucket: str, folders: list[str], slashes: int) -> None:
    plain = "/".join(["gs:/", bucket, *folders])
    more = "gs://" + ("/" * slashes).join([bucket, *folders, ""])
    assert parse(plain) == parse(more) == Address(bucket, "/".join(folders))
