"""What the URLs of repositories mean."""

from __future__ import annotations

from pathlib import Path

import pytest

from moorage._storage import LocalStorage, split
from moorage.errors import InvalidArgument


@pytest.mark.parametrize(
    "url, scheme, rest",
    [
        ("/srv/models", "file", "/srv/models"),
        ("/srv/models//", "file", "/srv/models"),
        ("/", "file", "/"),
        ("models", "file", "models"),
        ("./a:b", "file", "./a:b"),
        ("C:/models/", "file", "C:/models"),
        ("C:\\models", "file", "C:\\models"),
        ("c://models", "file", "c://models"),
        ("C:/", "file", "C:/"),
        ("file:///srv/models/", "file", "file:///srv/models"),
        ("FILE:///srv", "file", "file:///srv"),
        ("s3://bucket", "s3", "s3://bucket"),
        ("s3://bucket/", "s3", "s3://bucket"),
        ("S3://Bucket/Path", "s3", "s3://Bucket/Path"),
        ("s3://https://host:9000/bucket/repo/", "s3", "s3://https://host:9000/bucket/repo"),
        ("as://account/container", "as", "as://account/container"),
        ("zip://models::/srv/models.zip", "zip", "zip://models::/srv/models.zip"),
        ("zip://::s3://bucket/models.zip", "zip", "zip://::s3://bucket/models.zip"),
        ("zip::/srv/models.zip", "zip", "zip://::/srv/models.zip"),
        ("Zip::s3://bucket/models.zip", "zip", "zip://::s3://bucket/models.zip"),
    ],
)
def test_split(url: str, scheme: str, rest: str) -> None:
    assert split(url) == (scheme, rest)


@pytest.mark.parametrize("url", ["", "  ", "s3://", "a\0b"])
def test_urls_that_mean_nothing(url: str) -> None:
    with pytest.raises(InvalidArgument, match="model repository"):
        split(url)


@pytest.mark.parametrize("url", ["as://acct/cont?sv=1&sig=c2VjcmV0", "s3://bucket/p?X-Amz-Signature=c2VjcmV0"])
def test_signatures_are_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(InvalidArgument, match="would get into logs") as caught:
        split(url)
    assert "c2VjcmV0" not in str(caught.value)


@pytest.mark.parametrize(
    "url, path",
    [
        ("models", "models"),
        ("/srv/a b", "/srv/a b"),
        ("file:///srv/a%20b", "/srv/a b"),
        ("file://localhost/srv", "/srv"),
        ("file:///C:/models", "C:/models"),
    ],
)
def test_local_paths(url: str, path: str) -> None:
    assert LocalStorage().local_path(url) == Path(path)


@pytest.mark.parametrize("url", ["file://elsewhere/srv", "file://models"])
def test_file_urls_of_other_machines(url: str) -> None:
    with pytest.raises(InvalidArgument, match="three slashes"):
        LocalStorage().local_path(url)
