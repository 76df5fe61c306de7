"""What S3 URLs mean."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage._storage.urls import split
from moorage.errors import InvalidArgument
from moorage_s3.urls import S3Url, parse

POINT = "arn:aws:s3:us-west-2:123456789012:accesspoint"


@pytest.mark.parametrize(
    "url, endpoint, bucket, prefix",
    [
        ("s3://bkt/path/to/repo", "", "bkt", "path/to/repo"),
        ("s3://bkt", "", "bkt", ""),
        ("s3://bkt/", "", "bkt", ""),
        ("s3:///bkt/x//y/", "", "bkt", "x/y"),
        ("S3://Bkt/X", "", "Bkt", "X"),
        ("s3://store.example:9000/bkt/repo", "http://store.example:9000", "bkt", "repo"),
        ("s3://store.example:80/bkt/repo", "http://store.example:80", "bkt", "repo"),
        ("s3://https://store.example:9000/bkt/repo/", "https://store.example:9000", "bkt", "repo"),
        ("s3://HTTPS://store.example:9000/bkt", "https://store.example:9000", "bkt", ""),
        ("s3://http://10.0.0.5:9000/bkt", "http://10.0.0.5:9000", "bkt", ""),
        ("s3://http://10.0.0.5:9000//bkt///a//b/", "http://10.0.0.5:9000", "bkt", "a/b"),
        (
            "s3://https://ns.objects.example:443/UpperCaseBucket/repo",
            "https://ns.objects.example:443",
            "UpperCaseBucket",
            "repo",
        ),
        ("s3://https://store.example/bkt/repo", "https://store.example", "bkt", "repo"),
        ("s3://store.example/bkt/repo", "", "store.example", "bkt/repo"),
        (
            "s3://https://store.example:9000/bkt/date=2024-01-01/repo",
            "https://store.example:9000",
            "bkt",
            "date=2024-01-01/repo",
        ),
        ("s3://https://store.example:9000/bkt/my repo/x", "https://store.example:9000", "bkt", "my repo/x"),
        ("s3://bkt/50%25 (new)/ä?b#c", "", "bkt", "50%25 (new)/ä?b#c"),
        ("s3://minio_svc:9000/bkt/r", "http://minio_svc:9000", "bkt", "r"),
        ("s3://minio:9000/my_bucket/r", "http://minio:9000", "my_bucket", "r"),
        ("s3://[::1]:9000/bkt/r", "http://[::1]:9000", "bkt", "r"),
        ("s3://https://[2001:db8::1]/bkt", "https://[2001:db8::1]", "bkt", ""),
        (f"s3://{POINT}/mine/models", "", f"{POINT}/mine", "models"),
        (f"s3://{POINT}:mine/models", "", f"{POINT}:mine", "models"),
    ],
)
def test_the_obvious_parts(url: str, endpoint: str, bucket: str, prefix: str) -> None:
    expected = S3Url(bucket, prefix, endpoint)
    assert parse(url) == expected
    assert parse(split(url).url) == expected, "as the server hands it on"


@pytest.mark.parametrize(
    "url, told",
    [
        ("s3://https://store.example:9000", "names the server https://store.example:9000 but no bucket"),
        ("s3://https://store.example:9000/", "but no bucket"),
        ("s3://minio:9000", "names the server http://minio:9000 but no bucket"),
        ("s3://https://", "'' is not the address of a server"),
        ("s3://https:///bkt/x", "'' is not the address of a server"),
        ("s3://https:/store.example/bkt", "'https:' is understood as a bucket"),
        ("s3://http://host:99999/bkt", "'host:99999' is not the address of a server"),
        ("s3://http://host:port/bkt", "'host:port' is not the address of a server"),
        ("s3://host:port/bkt", "'host:port' is understood as a bucket"),
        ("s3://http://::1:9000/bkt", "'::1:9000' is not the address of a server"),
        ("s3://my bucket/x", "'my bucket' is understood as a bucket"),
        ("s3://minio:9000/a?b/x", "'a?b' is understood as a bucket"),
    ],
)
def test_what_cannot_be_meant_says_what_to_write(url: str, told: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        parse(split(url).url)
    assert told in str(caught.value)
    assert "write s3://BUCKET/PATH" in str(caught.value)


def test_passwords_in_urls_are_refused_and_not_shown() -> None:
    with pytest.raises(InvalidArgument, match="AWS_ACCESS_KEY_ID") as caught:
        parse("s3://https://key:hushhush@store.example/bkt")
    assert "hushhush" not in str(caught.value)


hosts = st.sampled_from(["store.example", "minio_svc", "10.0.0.5", "[::1]", "UPPER.example", "a"])
buckets = st.from_regex(r"[A-Za-z0-9._-]{3,20}", fullmatch=True)
parts = st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=8)
slashes = st.integers(1, 3).map(lambda number: "/" * number)


@given(
    hosts, st.sampled_from(["", "http://", "https://"]), st.integers(1, 65535), buckets, st.lists(parts, max_size=4), slashes
)
def test_server_bucket_and_path_come_apart(host: str, scheme: str, port: int, bucket: str, path: list[str], slash: str) -> None:
    found = parse(f"s3://{scheme}{host}:{port}{slash}{slash.join([bucket, *path])}")
    assert found == S3Url(bucket, "/".join(path), f"{scheme or 'http://'}{host}:{port}")
    assert all(parse(name) == found for name in found.names), "its plain forms mean the same"


@given(buckets, st.lists(parts, max_size=4), slashes)
def test_bucket_and_path_come_apart(bucket: str, path: list[str], slash: str) -> None:
    found = parse("s3://" + slash.join([bucket, *path]))
    assert found == S3Url(bucket, "/".join(path))
    assert [parse(name) for name in found.names] == [found]


@given(st.text(max_size=40))
def test_any_text_is_understood_or_refused(text: str) -> None:
    try:
        found = parse(f"s3://{text}")
    except InvalidArgument:
        return
    assert found.bucket
    assert "//" not in found.prefix
    assert not found.prefix.startswith("/")
