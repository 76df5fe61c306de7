"""What the tests of the S3 storage share: stores that only note what they are asked, and an emulator."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import pytest

from emulators.proxy import ALWAYS, Fault, Proxy
from emulators.s3 import aws, bucket, keys, kind, moto, proxy
from moorage_s3.storage import S3Storage

__all__ = ["aws", "bucket", "keys", "moto", "proxy"]

EMPTY = b'<?xml version="1.0"?><ListBucketResult><IsTruncated>false</IsTruncated><KeyCount>0</KeyCount></ListBucketResult>'


@pytest.fixture
def stub(aws: pytest.MonkeyPatch) -> Iterator[Proxy]:
    """A store that lists every bucket as empty."""
    with Proxy(kind=kind) as made:
        made.faults.append(Fault(status=200, times=ALWAYS, body=EMPTY))
        yield made


@pytest.fixture
def refusing(keys: pytest.MonkeyPatch) -> Iterator[Callable[..., Proxy]]:
    """Stores that answer every request with one error."""
    keys.setenv("AWS_MAX_ATTEMPTS", "1")
    running: list[Proxy] = []

    def refuse(status: int, code: str = "", headers: Mapping[str, str] | None = None, **details: str) -> Proxy:
        body = "".join(f"<{name}>{value}</{name}>" for name, value in {"Code": code, **details}.items())
        answer = f"<Error>{body}</Error>".encode() if code else b""
        made = Proxy(kind=kind)
        running.append(made)
        made.faults.append(Fault(status=status, times=ALWAYS, headers=headers or {}, body=answer))
        return made

    yield refuse
    for one in running:
        one.close()


@pytest.fixture
def storage() -> Iterator[S3Storage]:
    made = S3Storage()
    yield made
    made.close()
