"""What goes wrong is told apart, with the next step, without secrets. A stub answers as Azure does."""

from __future__ import annotations

import logging
import re
import socket
import traceback
from collections.abc import Iterator, Mapping
from typing import Any, Never
from urllib.parse import parse_qs, urlsplit

import pytest
from azure.identity import CredentialUnavailableError

from emulators.proxy import ALWAYS, Fault, Proxy
from moorage.errors import StorageError
from moorage_azure import containers
from moorage_azure.credentials import Access
from moorage_azure.faults import AzureFault, explain
from moorage_azure.storage import AzureStorage

KEY = "c2VjcmV0LWtleS1vZi10aGUtYWNjb3VudA=="
SIGNATURE = "c2VjcmV0LXNpZ25hdHVyZQ"
ANONYMOUS: Mapping[str, str] = {}
WITH_KEY = {"AZURE_STORAGE_KEY": KEY}
WITH_SAS = {"AZURE_STORAGE_SAS_TOKEN": f"sv=2024-11-04&sp=rl&sig={SIGNATURE}"}


@pytest.fixture
def stub() -> Iterator[Proxy]:
    with Proxy() as proxy:
        yield proxy


def refusal(status: int, code: str, message: str = "No.", detail: str = "", times: int = ALWAYS) -> Fault:
    """An answer of Azure's."""
    more = f"<AuthenticationErrorDetail>{detail}</AuthenticationErrorDetail>" if detail else ""
    error = f"<Code>{code}</Code><Message>{message}\nRequestId:1</Message>{more}"
    body = f'<?xml version="1.0" encoding="utf-8"?><Error>{error}</Error>'
    headers = {"x-ms-error-code": code, "Content-Type": "application/xml"}
    return Fault(times=times, status=status, headers=headers, body=body.encode())


def listing(storage: AzureStorage, url: str) -> str:
    """The error of a listing, as a user reads it."""
    with pytest.raises(StorageError) as caught:
        storage.list(url)
    text = str(caught.value)
    assert text.startswith(f"model repository {url}: ")
    shown = "".join(traceback.format_exception(caught.value))
    assert KEY not in shown and SIGNATURE not in shown
    return text


@pytest.mark.parametrize(
    "environ, fault, told",
    [
        (WITH_KEY, refusal(404, "ContainerNotFound"), "container 'cont' of account 'acct' does not exist: create it or"),
        (WITH_KEY, refusal(409, "ContainerBeingDeleted"), "container 'cont' of account 'acct' is being deleted"),
        (
            WITH_KEY,
            refusal(403, "AuthenticationFailed", detail="The MAC signature found in the HTTP request is not the same"),
            "AZURE_STORAGE_KEY does not open account 'acct': copy it again",
        ),
        (
            WITH_KEY,
            refusal(403, "AuthenticationFailed", detail="Request date header too old: 'Mon, 01 Jan 2024 00:00:00 GMT'"),
            "set this machine's clock",
        ),
        (
            WITH_SAS,
            refusal(403, "AuthenticationFailed", detail="Signature not valid in the specified time frame: Start - Expiry"),
            "AZURE_STORAGE_SAS_TOKEN has expired",
        ),
        (WITH_SAS, refusal(403, "AuthenticationFailed", detail="Signature did not match."), "SAS_TOKEN does not open"),
        (WITH_SAS, refusal(403, "AuthorizationPermissionMismatch"), "does not allow it; make a SAS token .*sp=rl"),
        (WITH_SAS, refusal(403, "AuthorizationSourceIPMismatch"), "not made for this machine's IP address"),
        (WITH_SAS, refusal(403, "AuthorizationResourceTypeMismatch"), "AZURE_STORAGE_SAS_TOKEN is made for something else"),
        (WITH_KEY, refusal(403, "AuthorizationFailure"), r"network rules \(firewall\)"),
        (WITH_KEY, refusal(403, "KeyBasedAuthenticationNotPermitted"), "takes no keys; set AZURE_STORAGE_AUTH_TYPE=managed_id"),
        (WITH_KEY, refusal(403, "AccountIsDisabled"), "account 'acct' is disabled"),
        (WITH_KEY, refusal(403, "SomethingNew"), "was refused: see whether the key is still the account's .403 SomethingNew"),
        (ANONYMOUS, refusal(404, "ResourceNotFound"), "not public, and it was read without credentials: set AZURE_STORAGE_KEY"),
        (ANONYMOUS, refusal(409, "PublicAccessNotPermitted"), "not public, and it was read without credentials"),
        (ANONYMOUS, refusal(401, "NoAuthenticationInformation"), "AZURE_STORAGE_AUTH_TYPE=managed_identity"),
        (
            WITH_KEY,
            Fault(status=404, body=b"<html>no"),
            r"does not answer as Azure Blob Storage does \(HTTP 404\)",
        ),
        (ANONYMOUS, Fault(status=403), "does not answer as Azure Blob Storage does"),
        (WITH_KEY, refusal(400, "InvalidResourceName", "Bad characters."), "answers 400 InvalidResourceName: Bad characters.$"),
    ],
)
def test_refusals_are_told_apart(
    environ: Mapping[str, str], fault: Fault, told: str, stub: Proxy, azure: pytest.MonkeyPatch, storage: AzureStorage
) -> None:
    for name, value in environ.items():
        azure.setenv(name, value)
    stub.faults.append(fault)
    url = f"as://{stub.url}/acct/cont"
    text = listing(storage, url)
    assert re.search(told, text), text
    assert "RequestId" not in text and "<" not in text
    assert len(stub.seen) == 1


@pytest.mark.parametrize("status, code", [(500, "InternalError"), (503, "ServerBusy"), (429, "TooManyRequests")])
def test_what_may_pass_is_tried_again(
    status: int, code: str, stub: Proxy, azure: pytest.MonkeyPatch, storage: AzureStorage
) -> None:
    empty = b"<EnumerationResults><Blobs/></EnumerationResults>"
    answer = Fault(status=200, times=ALWAYS, body=empty, headers={"Content-Type": "application/xml"})
    stub.faults += [refusal(status, code, times=2), answer]
    assert storage.list(f"as://{stub.url}/acct/cont") == ()
    assert len(stub.seen) == 3


def test_dropped_connections_are_tried_again(stub: Proxy, azure: pytest.MonkeyPatch, storage: AzureStorage) -> None:
    stub.faults += [Fault(drop=True, times=2), refusal(404, "ContainerNotFound")]
    azure.setenv("AZURE_STORAGE_KEY", KEY)
    assert "does not exist" in listing(storage, f"as://{stub.url}/acct/cont")
    assert len(stub.seen) == 3


def test_a_listing_of_several_pages(stub: Proxy, azure: pytest.MonkeyPatch, storage: AzureStorage) -> None:
    for names, marker in ((("p/m/1/a", "p/m/1/b"), "two"), (("p/m/2/a",), "three"), ((), "four"), (("p/n/1/a",), "")):
        properties = "<Properties><Etag>1</Etag><BlobType>BlockBlob</BlobType></Properties>"
        blobs = "".join(f"<Blob><Name>{name}</Name>{properties}</Blob>" for name in names)
        body = f"<EnumerationResults><Blobs>{blobs}</Blobs><NextMarker>{marker}</NextMarker></EnumerationResults>"
        stub.faults.append(
            Fault(status=200, skip=len(stub.faults), body=body.encode(), headers={"Content-Type": "application/xml"})
        )
    entries = storage.list(f"as://{stub.url}/acct/cont/p")
    assert [entry.path for entry in entries] == ["m/1/a", "m/1/b", "m/2/a", "n/1/a"]
    assert [parse_qs(urlsplit(one.target).query).get("marker") for one in stub.seen] == [None, ["two"], ["three"], ["four"]]


def unused_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is tried again."""
    monkeypatch.setattr("moorage.storage.transfer.ATTEMPTS", 1)
    monkeypatch.setattr("moorage_azure.storage.transient", lambda error: False)


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("environ", [WITH_SAS, WITH_KEY, ANONYMOUS], ids=["sas", "key", "anonymous"])
def test_no_service_at_all(environ: Mapping[str, str], azure: pytest.MonkeyPatch, storage: AzureStorage) -> None:
    for name, value in environ.items():
        azure.setenv(name, value)
    endpoint = f"http://127.0.0.1:{unused_port()}/acct"
    assert f"{endpoint} refuses connections" in listing(storage, f"as://{endpoint}/cont")


@pytest.mark.usefixtures("at_once")
def test_no_such_host(azure: pytest.MonkeyPatch, storage: AzureStorage) -> None:
    azure.setenv("AZURE_STORAGE_SAS_TOKEN", WITH_SAS["AZURE_STORAGE_SAS_TOKEN"])
    text = listing(storage, "as://acct.blob.no-such-cloud.invalid/cont")
    assert "no machine is called acct.blob.no-such-cloud.invalid: correct the account's name" in text


def test_the_name_of_a_host_says_nothing_of_what_is_wrong() -> None:
    access = Access("key", "ssltoken", "https://ssltoken.blob.core.windows.net")
    fault = AzureFault("HTTPSConnection(host='ssltoken.blob.core.windows.net'): Connection refused")
    assert "refuses connections" in explain(fault, access, "cont")


@pytest.mark.usefixtures("at_once")
def test_no_answer_in_time(stub: Proxy, azure: pytest.MonkeyPatch, storage: AzureStorage) -> None:
    azure.setattr(containers, "READ_TIMEOUT", 0.2)
    azure.setenv("AZURE_STORAGE_SAS_TOKEN", WITH_SAS["AZURE_STORAGE_SAS_TOKEN"])
    stub.faults.append(Fault(delay=30, times=ALWAYS))
    assert "does not answer" in listing(storage, f"as://{stub.url}/acct/cont")


@pytest.mark.usefixtures("at_once")
def test_no_tls_where_it_is_expected(stub: Proxy, azure: pytest.MonkeyPatch, storage: AzureStorage) -> None:
    assert "no secure connection" in listing(storage, f"as://https://127.0.0.1:{stub.port}/acct/cont")


class _NoIdentity:
    def get_token(self, *scopes: str, **more: Any) -> Never:
        raise CredentialUnavailableError(
            "ManagedIdentityCredential authentication unavailable.\nNo response from the endpoint."
        )


def test_an_identity_that_is_not_there(azure: pytest.MonkeyPatch, storage: AzureStorage) -> None:
    azure.setattr(containers, "credential", lambda _: _NoIdentity())
    azure.setenv("AZURE_STORAGE_AUTH_TYPE", "managed_identity")
    text = listing(storage, "as://acct/cont")
    assert (
        "AZURE_STORAGE_AUTH_TYPE led to no credentials: ManagedIdentityCredential authentication unavailable. No resp" in text
    )


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("environ", [WITH_SAS, WITH_KEY], ids=["sas", "key"])
def test_no_secret_is_logged(
    environ: Mapping[str, str], stub: Proxy, azure: pytest.MonkeyPatch, storage: AzureStorage, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither by this package nor by a library, whatever the level."""
    for name, value in environ.items():
        azure.setenv(name, value)
    stub.faults += [refusal(403, "AuthenticationFailed", detail="Signature did not match."), Fault(drop=True)]
    for name in ("urllib3", "azure.core", "azure.storage"):
        azure.setattr(logging.getLogger(name), "level", logging.NOTSET)
    with caplog.at_level(logging.DEBUG):
        listing(storage, f"as://{stub.url}/acct/cont")
        listing(storage, f"as://{stub.url}/acct/cont")
    assert KEY not in caplog.text and SIGNATURE not in caplog.text


def test_a_new_key_is_used_once_the_old_one_was_refused(stub: Proxy, azure: pytest.MonkeyPatch, storage: AzureStorage) -> None:
    stub.faults.append(refusal(403, "AuthenticationFailed", detail="Signature did not match."))
    azure.setenv("AZURE_STORAGE_SAS_TOKEN", "sv=1&sig=old")
    url = f"as://{stub.url}/acct/cont"
    listing(storage, url)
    azure.setenv("AZURE_STORAGE_SAS_TOKEN", "sv=1&sig=new")
    listing(storage, url)
    assert ["sig=new" in one.target for one in stub.seen] == [False, True]
