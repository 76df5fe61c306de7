"""What is said of a store that refuses, cannot be found or fails, and what is tried again. The store is a stub."""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from emulators.gcs import kind
from emulators.proxy import ALWAYS, Fault, Proxy, containing, of_kind
from moorage.errors import StorageError
from moorage_gcs.storage import GcsStorage

LISTED = json.dumps({"kind": "storage#objects"}).encode()


@pytest.fixture
def stub(gcs: pytest.MonkeyPatch) -> Iterator[Proxy]:
    """A store that finds nothing unless a fault says what it answers."""
    with Proxy(kind=kind) as proxy:
        gcs.setenv("STORAGE_EMULATOR_HOST", proxy.url)
        yield proxy


@pytest.fixture
def key_file(stub: Proxy, gcs: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], None]:
    """`key_file("1")` puts a service account's key in place, with this number, whose tokens the stub gives at /token."""
    private = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    kind = serialization.PrivateFormat.PKCS8
    pem = private.private_bytes(serialization.Encoding.PEM, kind, serialization.NoEncryption()).decode()
    file = tmp_path / "key.json"

    def key_file(number: str) -> None:
        content = {"client_email": "a@b.iam", "private_key": pem, "private_key_id": number, "type": "service_account"}
        file.write_text(json.dumps({**content, "token_uri": f"{stub.url}/token?key={number}"}))

    key_file("1")
    (tmp_path / "credentials.json").write_text(json.dumps({"gs": {"": str(file)}}))
    gcs.setenv("TRITON_CLOUD_CREDENTIAL_PATH", str(tmp_path / "credentials.json"))
    return key_file


def answer(status: int, message: str) -> Fault:
    return Fault(status=status, times=ALWAYS, body=json.dumps({"error": {"code": status, "message": message}}).encode())


def told(storage: GcsStorage | None = None) -> str:
    """What the error of a listing says."""
    with pytest.raises(StorageError) as caught:
        (storage or GcsStorage()).list("gs://bkt/models")
    assert str(caught.value).startswith("model repository gs://bkt/models: ")
    return str(caught.value)


def test_a_bucket_that_is_not_there(stub: Proxy) -> None:
    assert "there is no bucket 'bkt': create it or correct the URL" in told()
    assert stub.counts() == {"list": 1}


def test_a_file_that_is_not_there(stub: Proxy) -> None:
    with pytest.raises(StorageError, match=r"file m/config\.pbtxt: it does not exist"):
        GcsStorage().read("gs://bkt/models", "m/config.pbtxt")


def test_access_is_forbidden(stub: Proxy) -> None:
    stub.faults.append(answer(403, "me@project.iam does not have storage.objects.list access to the bucket."))
    assert "access is forbidden: me@project.iam does not have storage.objects.list access to the bucket. If" in told()
    assert "roles/storage.objectViewer" in told()


@pytest.mark.parametrize(
    "status, message, said",
    [
        (
            401,
            "Anonymous caller does not have storage.objects.list access to the bucket.",
            "set GOOGLE_APPLICATION_CREDENTIALS",
        ),
        (401, "Invalid Credentials", "they may have expired or been revoked"),
        (400, "Bucket is a requester pays bucket but no user project provided.", "in MOORAGE_GCS_USER_PROJECT"),
    ],
)
def test_other_refusals(status: int, message: str, said: str, stub: Proxy) -> None:
    stub.faults.append(answer(status, message))
    assert said in told()
    assert stub.counts() == {"list": 1}


@pytest.mark.parametrize("status, times", [(500, 5), (502, 2), (503, 1), (429, 1), (408, 1)])
def test_what_may_pass_is_tried_again(status: int, times: int, stub: Proxy) -> None:
    stub.faults += [Fault(status=status, times=times), Fault(of_kind("list"), status=200, body=LISTED, times=ALWAYS)]
    if times < 5:
        assert GcsStorage().list("gs://bkt/models") == ()
        assert stub.counts()["list"] == times + 2  # gcsfs asks twice whether nothing is there
    else:
        assert "is at fault (status 500)" in told()
        assert stub.counts() == {"list": 5}


def test_an_answer_that_is_garbled_is_asked_for_again(stub: Proxy) -> None:
    stub.faults += [
        Fault(truncate_to=3, status=200, body=LISTED),
        Fault(of_kind("list"), status=200, body=LISTED, times=ALWAYS),
    ]
    assert GcsStorage().list("gs://bkt/models") == ()


def test_a_server_that_speaks_otherwise(stub: Proxy) -> None:
    stub.faults.append(Fault(status=200, body=b"<html>hello</html>", times=ALWAYS))
    assert "what answers is no JSON, unlike Google Cloud Storage: look at STORAGE_EMULATOR_HOST" in told()


def test_a_connection_that_ends_is_tried_again(stub: Proxy) -> None:
    stub.faults += [
        Fault(drop=True),
        Fault(cut_after=3, status=200, body=LISTED),
        Fault(of_kind("list"), status=200, body=LISTED, times=ALWAYS),
    ]
    assert GcsStorage().list("gs://bkt/models") == ()


@pytest.mark.parametrize(
    "host, said",
    [
        ("http://no-such-host.invalid", "there is no host 'no-such-host.invalid'"),
        ("http://127.0.0.1:1", "127.0.0.1:1 cannot be reached"),
    ],
)
def test_hosts_that_cannot_be_reached(host: str, said: str, gcs: pytest.MonkeyPatch) -> None:
    gcs.setenv("STORAGE_EMULATOR_HOST", host)
    assert said in told()


def token(text: str, seconds: int = 3600) -> bytes:
    return json.dumps({"access_token": text, "expires_in": seconds, "token_type": "Bearer"}).encode()


def refusal(code: str, description: str) -> bytes:
    return json.dumps({"error": code, "error_description": description}).encode()


@pytest.mark.parametrize(
    "body, said",
    [
        (refusal("invalid_grant", "Invalid JWT: Token must be in a reasonable timeframe. Check your iat and exp"), "clock"),
        (refusal("invalid_grant", "Invalid JWT Signature."), "the key or the login has expired or been revoked"),
        (refusal("unauthorized_client", "Client is unauthorized"), "no access token is given: "),
    ],
)
def test_tokens_that_are_refused(body: bytes, said: str, stub: Proxy, key_file: Callable[[str], None]) -> None:
    stub.faults.append(Fault(containing("/token"), status=400, body=body, times=ALWAYS))
    assert said in told()
    assert "list" not in stub.counts()


def test_a_token_service_that_cannot_be_reached(stub: Proxy, key_file: Callable[[str], None], tmp_path: Path) -> None:
    content = json.loads((tmp_path / "key.json").read_text())
    (tmp_path / "key.json").write_text(json.dumps({**content, "token_uri": "http://127.0.0.1:1/token"}))
    assert "Google's token service cannot be reached" in told()


def test_tokens_are_renewed_before_they_expire(stub: Proxy, key_file: Callable[[str], None]) -> None:
    stub.faults += [
        Fault(containing("/token"), status=200, body=token(f"token-{number}", 5), skip=number, times=1) for number in range(9)
    ]
    stub.faults.append(Fault(of_kind("list"), status=200, body=LISTED, times=ALWAYS))
    storage = GcsStorage()
    storage.list("gs://bkt/models")
    first = len(stub.seen)
    storage.list("gs://bkt/models")
    sent = [seen.headers["authorization"] for seen in stub.seen if seen.kind == "list"]
    assert sent[0] == "Bearer token-0"
    assert sent[-1] != sent[0]
    assert len(stub.seen) > first


def test_a_key_that_is_replaced_is_read_again(stub: Proxy, key_file: Callable[[str], None]) -> None:
    stub.faults += [
        Fault(containing("/token?key=1"), status=400, body=refusal("invalid_grant", "Invalid JWT Signature."), times=ALWAYS),
        Fault(containing("/token?key=2"), status=200, body=token("fresh"), times=ALWAYS),
        Fault(of_kind("list"), status=200, body=LISTED, times=ALWAYS),
    ]
    storage = GcsStorage()
    assert "create it anew" in told(storage)
    key_file("2")
    assert storage.list("gs://bkt/models") == ()


def test_another_account_is_asked_once_the_first_was_forbidden(stub: Proxy, key_file: Callable[[str], None]) -> None:
    stub.faults += [
        Fault(containing("/token?key=1"), status=200, body=token("first"), times=ALWAYS),
        Fault(containing("/token?key=2"), status=200, body=token("second"), times=ALWAYS),
        Fault(of_kind("list"), status=403, body=refusal("forbidden", "first@x does not have storage.objects.list access")),
        Fault(of_kind("list"), status=200, body=LISTED, times=ALWAYS),
    ]
    storage = GcsStorage()
    told(storage)
    key_file("2")
    assert storage.list("gs://bkt/models") == ()
    asked = [one.headers["authorization"] for one in stub.seen if one.kind == "list"]
    assert (asked[0], asked[-1]) == ("Bearer first", "Bearer second")


def test_no_error_shows_a_secret(
    stub: Proxy, key_file: Callable[[str], None], caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    caplog.set_level("DEBUG")
    stub.faults += [Fault(containing("/token"), status=200, body=token("the-token"), times=ALWAYS), answer(403, "no")]
    with pytest.raises(StorageError) as caught:
        GcsStorage().list("gs://bkt/models")
    secret = json.loads((tmp_path / "key.json").read_text())["private_key"].splitlines()[1]
    shown = "".join(traceback.format_exception(caught.value)) + "".join(str(vars(record)) for record in caplog.records)
    assert "the-token" not in shown
    assert secret not in shown
