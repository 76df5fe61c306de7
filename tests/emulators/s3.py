"""S3 for tests: moto's server as a process, buckets in it, and what kind of request one is.

A conftest takes the fixtures by importing them:

    from emulators.s3 import aws, bucket, moto, proxy
"""

from __future__ import annotations

import contextlib
import os
import sys
import uuid
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from attrs import frozen

from emulators.process import announced
from emulators.proxy import Proxy, Seen

KEY, SECRET, REGION = "test-key-id", "test-secret-key", "us-east-1"
PAGE = 60


@contextlib.contextmanager
def started(page: int = 1000) -> Iterator[str]:
    """The URL of a server that runs while the context lasts. It lists so many objects at once."""
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"]
    environment = {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET, "MOTO_S3_DEFAULT_MAX_KEYS": str(page)}
    with announced(command, r"Running on (http://\S+)", environment) as url:
        yield url


def client(url: str) -> Any:
    """A client of boto3's, to put things into the store."""
    import boto3

    return boto3.client("s3", endpoint_url=url, aws_access_key_id=KEY, aws_secret_access_key=SECRET, region_name=REGION)


def kind(seen: Seen) -> str:
    """What a request asks for: "list", "get", "head", "put" … of objects; "… bucket" of a bucket itself."""
    parts = urlsplit(seen.target)
    bucket, _, key = parts.path.lstrip("/").partition("/")
    query = parse_qs(parts.query, keep_blank_values=True)
    if not bucket:
        return "buckets"
    if key:
        return seen.method.lower()
    if seen.method == "GET" and not query.keys() & {"location", "versioning", "acl", "policy"}:
        return "list"
    return f"{seen.method.lower()} bucket"


@frozen(eq=False)
class Bucket:
    """A bucket of the emulator."""

    name: str
    client: Any

    def put(self, key: str, content: bytes = b"") -> None:
        self.client.put_object(Bucket=self.name, Key=key, Body=content)

    def fill(self, files: Mapping[str, bytes]) -> None:
        for key, content in files.items():
            self.put(key, content)

    def delete(self, key: str) -> None:
        self.client.delete_object(Bucket=self.name, Key=key)


def made(url: str, name: str = "") -> Bucket:
    """A new bucket, with a name of its own unless one is given."""
    name = name or f"models-{uuid.uuid4().hex[:12]}"
    maker = client(url)
    maker.create_bucket(Bucket=name)
    return Bucket(name, maker)


@pytest.fixture(scope="session")
def moto() -> Iterator[str]:
    """The URL of an S3 server, which lists `PAGE` objects at once."""
    with started(PAGE) as url:
        yield url


@pytest.fixture
def proxy(moto: str) -> Iterator[Proxy]:
    """A proxy before the S3 server, without faults."""
    with Proxy(moto, kind=kind) as made_proxy:
        yield made_proxy


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> pytest.MonkeyPatch:
    """The environment without anything that leads to credentials, on this machine or outside."""
    for name in [name for name in os.environ if name.startswith(("AWS_", "TRITON_", "MOORAGE_"))]:
        monkeypatch.delenv(name)
    empty = tmp_path_factory.mktemp("aws") / "empty"
    empty.touch()
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(empty))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    return monkeypatch


@pytest.fixture
def keys(aws: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """The environment with a key, and nothing else."""
    aws.setenv("AWS_ACCESS_KEY_ID", KEY)
    aws.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    return aws


@pytest.fixture
def bucket(moto: str) -> Bucket:
    """A new, empty bucket."""
    return made(moto)
