"""Each cause has a message of its own, with the next step."""

from __future__ import annotations

import datetime as dt
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from emulators.proxy import ALWAYS, Fault, Proxy
from moorage.errors import StorageError
from moorage.storage import Entry
from moorage_s3.storage import S3Storage

Refuse = Callable[..., Proxy]
FILE = Entry("m/1/model.bin", 10, "10-abc")


def told(storage: S3Storage, url: str) -> str:
    with pytest.raises(StorageError) as caught:
        storage.list(url)
    return str(caught.value)


def download_told(storage: S3Storage, url: str, folder: Path) -> str:
    with pytest.raises(StorageError) as caught:
        storage.download(url, [FILE], folder)
    return str(caught.value)


LISTING: dict[str, tuple[tuple[Any, ...], str]] = {
    "wrong region": (
        (301, "PermanentRedirect", {"x-amz-bucket-region": "eu-west-1"}),
        "in region eu-west-1: set AWS_DEFAULT_REGION=eu-west-1",
    ),
    "wrong region, in the body": (
        (400, "AuthorizationHeaderMalformed", {}, "Region", "eu-west-2"),
        "set AWS_DEFAULT_REGION=eu-west-2",
    ),
    "wrong region, unnamed": ((301,), "is in another region: find out in which"),
    "not allowed": ((403, "AccessDenied"), "allow s3:ListBucket on arn:aws:s3:::bkt for these credentials"),
    "not allowed, without a body": ((403,), "allow s3:ListBucket on arn:aws:s3:::bkt"),
    "no such bucket": (
        (404, "NoSuchBucket"),
        "bucket 'bkt' at http://127.0.0.1:PORT does not exist: create it or correct the URL",
    ),
    "no S3": ((404,), "does not answer as an S3 server does (HTTP 404): check host and port"),
    "expired": ((400, "ExpiredToken"), "the session token has expired: put new credentials into"),
    "skewed": (
        (403, "RequestTimeTooSkewed", {}, "ServerTime", "2030-01-01T00:00:00Z"),
        "clock of this machine is wrong (the store has 2030-",
    ),
    "bad secret": ((403, "SignatureDoesNotMatch"), "the secret key does not belong to the key id: check AWS_SECRET_ACCESS_KEY"),
    "bad key": ((403, "InvalidAccessKeyId"), "the key id is not known: check AWS_ACCESS_KEY_ID"),
    "bad token": ((400, "InvalidToken"), "AWS_SESSION_TOKEN must come from the same place"),
    "overloaded": (
        (503, "SlowDown", {}, "Message", "Reduce your rate"),
        "HTTP 503, SlowDown: Reduce your rate, also when asked again",
    ),
    "ill": ((500,), "HTTP 500, Internal Server Error, also when asked again: the store is overloaded or ill"),
    "news": ((418, "Teapot", {}, "Message", "short and stout"), "answers with HTTP 418, Teapot: short and stout"),
}


@pytest.mark.parametrize("name", LISTING)
def test_listing(name: str, refusing: Refuse, storage: S3Storage) -> None:
    answer, expected = LISTING[name]
    fixed, more = answer[:3], answer[3:]
    store = refusing(*fixed, **dict(zip(more[::2], more[1::2], strict=True)))
    message = told(storage, f"s3://{store.url}/bkt/models")
    assert expected.replace("PORT", str(store.port)) in message
    assert message.startswith(f"model repository s3://{store.url}/bkt/models: ")
    assert "response body" not in message
    assert store.methods().get("GET", 0) <= 2
    assert "head bucket" not in store.counts()


def test_all_causes_differ(refusing: Refuse, storage: S3Storage) -> None:
    assert len({expected for _, expected in LISTING.values()}) == len(LISTING)


@pytest.mark.parametrize(
    "status, code, expected",
    [
        (403, "AccessDenied", "allow s3:GetObject on arn:aws:s3:::bkt/models/*"),
        (404, "NoSuchKey", "it is not there (any more)"),
        (412, "PreconditionFailed", "it has changed since it was listed; the load can be tried again"),
        (403, "InvalidObjectState", "it lies in an archive (Glacier): restore it"),
        (400, "ExpiredToken", "the session token has expired"),
    ],
)
def test_downloads(status: int, code: str, expected: str, refusing: Refuse, storage: S3Storage, tmp_path: Path) -> None:
    url = f"s3://{refusing(status, code).url}/bkt/models"
    message = download_told(storage, url, tmp_path)
    assert expected in message
    assert message.startswith(f"model repository {url}, file m/1/model.bin: ")


def test_a_store_that_ignores_ranges(refusing: Refuse, storage: S3Storage, tmp_path: Path) -> None:
    store = refusing(200)
    store.faults[:] = [Fault(status=200, body=b"x" * 100, times=ALWAYS)]
    assert "does not answer requests for parts of a file" in download_told(storage, f"s3://{store.url}/bkt", tmp_path)


@pytest.mark.parametrize("bucket", ["store.example", "localhost", "http"])
def test_a_bucket_that_looks_like_a_server(bucket: str, refusing: Refuse, storage: S3Storage, keys: pytest.MonkeyPatch) -> None:
    keys.setenv("AWS_ENDPOINT_URL", refusing(404, "NoSuchBucket").url)
    message = told(storage, f"s3://{bucket}/bkt/repo")
    assert f"If '{bucket}' is meant to be a server: write s3://http://" in message
    assert "AWS_ENDPOINT_URL" in message


def test_a_bucket_that_does_not(refusing: Refuse, storage: S3Storage, keys: pytest.MonkeyPatch) -> None:
    keys.setenv("AWS_ENDPOINT_URL", refusing(404, "NoSuchBucket").url)
    assert "meant to be a server" not in told(storage, "s3://models/repo")


def test_a_redirect_to_the_right_region_is_followed_and_told_once(
    keys: pytest.MonkeyPatch, stub: Proxy, storage: S3Storage, caplog: pytest.LogCaptureFixture
) -> None:
    stub.faults[0] = Fault(
        status=200, times=ALWAYS, body=stub.faults[0].body, headers={"x-amz-bucket-region": "eu-west-1"}, skip=1
    )
    moved = b"<Error><Code>PermanentRedirect</Code></Error>"
    stub.faults.append(Fault(status=301, headers={"x-amz-bucket-region": "eu-west-1"}, body=moved))
    for _ in range(3):
        assert storage.list(f"s3://{stub.url}/bkt") == ()
    assert stub.methods() == {"GET": 4}
    assert ["/eu-west-1/s3/" in one.headers["authorization"] for one in stub.seen] == [False, True, True, True]
    assert caplog.text.count("set AWS_DEFAULT_REGION=eu-west-1 (now us-east-1)") == 1


@pytest.fixture
def once(keys: pytest.MonkeyPatch) -> None:
    keys.setenv("AWS_MAX_ATTEMPTS", "1")


def test_nobody_there(once: None, storage: S3Storage) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    assert f"http://127.0.0.1:{port} cannot be reached: see whether it runs" in told(storage, f"s3://127.0.0.1:{port}/bkt")


def test_no_such_host(once: None, storage: S3Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    assert "there is no host of that name: https://store.invalid; correct the URL" in told(
        storage, "s3://https://store.invalid/bkt"
    )


def test_a_silent_store(once: None, storage: S3Storage, stub: Proxy, keys: pytest.MonkeyPatch) -> None:
    keys.setenv("MOORAGE_S3_READ_TIMEOUT", "0.2")
    never = threading.Event()
    stub.faults.append(Fault(until=never, times=ALWAYS))
    message = told(storage, f"s3://{stub.url}/bkt")
    never.set()
    assert "has been silent for too long (MOORAGE_S3_READ_TIMEOUT)" in message


def test_a_store_that_hangs_up(once: None, storage: S3Storage, stub: Proxy) -> None:
    stub.faults.append(Fault(drop=True, times=ALWAYS))
    assert "closed the connection without an answer" in told(storage, f"s3://{stub.url}/bkt")


def test_something_else_that_answers(refusing: Refuse, storage: S3Storage) -> None:
    store = refusing(200)
    store.faults[:] = [Fault(status=200, headers={"Content-Type": "text/html"}, body=b"<html><p>Welcome!</html>", times=ALWAYS)]
    assert "does not answer as an S3 server does" in told(storage, f"s3://{store.url}/bkt")


def test_an_http_proxy_that_is_not_there(once: None, storage: S3Storage, keys: pytest.MonkeyPatch) -> None:
    keys.setenv("http_proxy", "http://127.0.0.1:1")
    assert "the HTTP proxy that HTTPS_PROXY or HTTP_PROXY names" in told(storage, "s3://store.example:80/bkt")


def test_a_failing_program_for_credentials(aws: pytest.MonkeyPatch, storage: S3Storage, tmp_path: Path) -> None:
    (tmp_path / "config").write_text("[default]\ncredential_process = false\n")
    aws.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    assert "the credentials could not be had from custom-process" in told(storage, "s3://bkt")


def test_a_role_that_is_not_given(aws: pytest.MonkeyPatch, storage: S3Storage, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("test-web-identity")
    refusal = b"<ErrorResponse><Error><Code>AccessDenied</Code><Message>Not authorized</Message></Error></ErrorResponse>"
    with Proxy() as sts:
        sts.faults.append(Fault(status=403, body=refusal, times=ALWAYS))
        for name, value in {
            "AWS_WEB_IDENTITY_TOKEN_FILE": str(token),
            "AWS_ROLE_ARN": "arn:aws:iam::123456789012:role/models",
            "AWS_ENDPOINT_URL_STS": sts.url,
            "AWS_REGION": "eu-west-1",
            "AWS_MAX_ATTEMPTS": "1",
        }.items():
            aws.setenv(name, value)
        message = told(storage, "s3://bkt")
        assert "the role could not be taken (AssumeRoleWithWebIdentity answers AccessDenied: Not authorized)" in message
        assert "test-web-identity" not in message
        token.unlink()
        assert f"AWS_WEB_IDENTITY_TOKEN_FILE names {token}, which cannot be read" in told(S3Storage(), "s3://bkt")


def test_what_is_wrong_on_this_machine_is_told_of_this_machine(
    keys: pytest.MonkeyPatch, stub: Proxy, storage: S3Storage, tmp_path: Path
) -> None:
    url = f"s3://{stub.url}/bkt"
    storage.list(url)
    (tmp_path / "m").write_bytes(b"")
    assert f"{tmp_path / 'm' / '1'}: Not a directory" in download_told(storage, url, tmp_path)


def test_no_region_of_that_shape(keys: pytest.MonkeyPatch, storage: S3Storage) -> None:
    keys.setenv("AWS_DEFAULT_REGION", "eu west")
    assert "the store cannot be asked" in told(storage, "s3://bkt")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for 127.0.0.1 that nobody has signed, with its key."""
    import ipaddress

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "store")])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    file = tmp_path_factory.mktemp("tls") / "store.pem"
    file.write_bytes(
        made.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return file


@pytest.fixture
def secured(once: None, certificate: Path, stub: Proxy) -> Iterator[Proxy]:
    """A store that speaks TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with Proxy(stub.url, tls=context) as made:
        yield made


def test_an_unknown_certificate(secured: Proxy, storage: S3Storage) -> None:
    message = told(storage, f"s3://{secured.url}/bkt")
    assert "is not trusted (self" in message
    assert "set AWS_CA_BUNDLE" in message


def test_a_certificate_of_ones_own(secured: Proxy, storage: S3Storage, keys: pytest.MonkeyPatch, certificate: Path) -> None:
    keys.setenv("AWS_CA_BUNDLE", str(certificate))
    assert storage.list(f"s3://{secured.url}/bkt") == ()


def test_without_the_check_of_certificates(
    secured: Proxy, storage: S3Storage, keys: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    keys.setenv("MOORAGE_S3_TLS_VERIFY", "false")
    assert storage.list(f"s3://{secured.url}/bkt") == ()
    assert "whoever is in between can read and change models" in caplog.text


def test_tls_to_a_store_without(once: None, stub: Proxy, storage: S3Storage) -> None:
    assert "if it speaks plain HTTP, write http://" in told(storage, f"s3://https://127.0.0.1:{stub.port}/bkt")


def test_no_tls_to_a_store_with(secured: Proxy, storage: S3Storage) -> None:
    assert "if it speaks TLS, write https:// before the host" in told(storage, f"s3://127.0.0.1:{secured.port}/bkt")
