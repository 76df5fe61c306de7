"""Which credentials, and whose, are chosen. Nothing here asks Azure."""

from __future__ import annotations

import base64
import json
import logging
from pathlib import Path
from typing import Any

import pytest
from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.identity import DefaultAzureCredential, ManagedIdentityCredential
from hypothesis import given
from hypothesis import strategies as st

from moorage.errors import StorageError
from moorage_azure.containers import credential
from moorage_azure.credentials import KINDS, Access, choose
from moorage_azure.settings import from_environment, from_file
from moorage_azure.storage import AzureStorage
from moorage_azure.urls import Address, parse

KEY = "c2VjcmV0LWtleS1vZi10aGUtYWNjb3VudA=="
SIGNATURE = "c2VjcmV0LXNpZ25hdHVyZQ"
SAS = f"sv=2024-11-04&sp=rl&sig={SIGNATURE}"
STRING = f"DefaultEndpointsProtocol=https;AccountName=acct;AccountKey={KEY};EndpointSuffix=core.windows.net"
ADDRESS = Address("acct", "cont", "p")


def chosen(environ: dict[str, str], url: str = "as://acct/cont/p") -> Access:
    return choose(parse(url), from_environment(environ))


@pytest.mark.parametrize(
    "environ, kind, source",
    [
        ({"AZURE_STORAGE_ACCOUNT": "acct", "AZURE_STORAGE_KEY": KEY}, "key", "AZURE_STORAGE_KEY"),
        ({"AZURE_STORAGE_KEY": KEY}, "key", "AZURE_STORAGE_KEY"),
        ({"AZURE_STORAGE_KEY": f" {KEY}\n"}, "key", "AZURE_STORAGE_KEY"),
        ({"AZURE_STORAGE_ACCOUNT_NAME": "acct", "AZURE_STORAGE_ACCOUNT_KEY": KEY}, "key", "AZURE_STORAGE_ACCOUNT_KEY"),
        ({"AZURE_STORAGE_AUTH_TYPE": "key", "AZURE_STORAGE_KEY": KEY}, "key", "AZURE_STORAGE_KEY"),
        ({"AZURE_STORAGE_SAS_TOKEN": SAS}, "sas", "AZURE_STORAGE_SAS_TOKEN"),
        ({"AZURE_STORAGE_SAS_TOKEN": f"?{SAS}"}, "sas", "AZURE_STORAGE_SAS_TOKEN"),
        ({"AZURE_STORAGE_SAS_TOKEN": f"https://acct.blob.core.windows.net/cont?{SAS}"}, "sas", "AZURE_STORAGE_SAS_TOKEN"),
        ({"AZURE_STORAGE_SAS_TOKEN": SAS, "AZURE_STORAGE_KEY": KEY}, "key", "AZURE_STORAGE_KEY"),
        (
            {"AZURE_STORAGE_SAS_TOKEN": SAS, "AZURE_STORAGE_KEY": KEY, "AZURE_STORAGE_AUTH_TYPE": "SAS"},
            "sas",
            "AZURE_STORAGE_SAS_TOKEN",
        ),
        ({"AZURE_STORAGE_CONNECTION_STRING": STRING}, "key", "AccountKey in AZURE_STORAGE_CONNECTION_STRING"),
        ({"AZURE_STORAGE_CONNECTION_STRING": STRING, "AZURE_STORAGE_KEY": "b3RoZXI="}, "key", "AccountKey in AZURE_STORAGE_"),
        (
            {"AZURE_STORAGE_CONNECTION_STRING": STRING, "AZURE_STORAGE_KEY": KEY, "AZURE_STORAGE_AUTH_TYPE": "key"},
            "key",
            "AZURE_STORAGE_KEY",
        ),
        (
            {"AZURE_STORAGE_AUTH_TYPE": "managed_identity", "AZURE_STORAGE_KEY": KEY},
            "managed_identity",
            "AZURE_STORAGE_AUTH_TYPE",
        ),
        ({"AZURE_STORAGE_AUTH_TYPE": "Managed-Identity"}, "managed_identity", "AZURE_STORAGE_AUTH_TYPE"),
        ({"AZURE_STORAGE_CLIENT_ID": "id"}, "managed_identity", "AZURE_STORAGE_AUTH_TYPE"),
        ({"AZURE_STORAGE_AUTH_TYPE": "default"}, "default", "AZURE_STORAGE_AUTH_TYPE"),
        ({"AZURE_CLIENT_ID": "id", "AZURE_TENANT_ID": "t", "AZURE_CLIENT_SECRET": "s"}, "default", "AZURE_STORAGE_AUTH_TYPE"),
        ({"AZURE_CLIENT_ID": "id", "AZURE_FEDERATED_TOKEN_FILE": "/token"}, "default", "AZURE_STORAGE_AUTH_TYPE"),
        ({"AZURE_STORAGE_AUTH_TYPE": "anonymous", "AZURE_STORAGE_KEY": KEY}, "anonymous", "AZURE_STORAGE_AUTH_TYPE"),
        (
            {"AZURE_STORAGE_AUTH_TYPE": "anonymous", "AZURE_STORAGE_CONNECTION_STRING": STRING},
            "anonymous",
            "AZURE_STORAGE_AUTH",
        ),
        ({"AZURE_STORAGE_ACCOUNT": "acct"}, "anonymous", "AZURE_STORAGE_AUTH_TYPE"),
        ({"AZURE_STORAGE_KEY": " "}, "anonymous", "AZURE_STORAGE_AUTH_TYPE"),
        ({}, "anonymous", "AZURE_STORAGE_AUTH_TYPE"),
    ],
)
def test_the_environment_says_which(environ: dict[str, str], kind: str, source: str) -> None:
    access = chosen(environ)
    assert (access.kind, access.account) == (kind, "acct")
    assert access.secret == {"key": KEY, "sas": SAS}.get(kind, "")
    assert access.source.startswith(source)
    assert access.endpoint == "https://acct.blob.core.windows.net"


@pytest.mark.parametrize(
    "environ, url, endpoint",
    [
        ({}, "as://acct/cont", "https://acct.blob.core.windows.net"),
        ({}, "as://acct.blob.core.chinacloudapi.cn/cont", "https://acct.blob.core.chinacloudapi.cn"),
        ({}, "as://devstoreaccount1/cont", "http://127.0.0.1:10000/devstoreaccount1"),
        ({"AZURE_STORAGE_SERVICE_ENDPOINT": "http://h:1/acct/"}, "as://acct/cont", "http://h:1/acct"),
        ({"AZURE_STORAGE_SERVICE_ENDPOINT": "http://h:1/acct"}, "as://g:2/acct/cont", "http://g:2/acct"),
        ({"AZURE_STORAGE_SERVICE_ENDPOINT": "https://models.example.com"}, "as://acct/cont", "https://models.example.com"),
        (
            {
                "AZURE_STORAGE_CONNECTION_STRING": f"AccountName=devstoreaccount1;AccountKey={KEY};BlobEndpoint=http://127.0.0.1:7/d/"
            },
            "as://devstoreaccount1/cont",
            "http://127.0.0.1:7/d",
        ),
        (
            {"AZURE_STORAGE_CONNECTION_STRING": "UseDevelopmentStorage=true"},
            "az://cont",
            "http://127.0.0.1:10000/devstoreaccount1",
        ),
        (
            {"AZURE_STORAGE_CONNECTION_STRING": f"AccountName=acct;AccountKey={KEY};EndpointSuffix=core.usgovcloudapi.net"},
            "az://cont",
            "https://acct.blob.core.usgovcloudapi.net",
        ),
        (
            {
                "AZURE_STORAGE_CONNECTION_STRING": f"BlobEndpoint=https://acct.blob.core.windows.net/;SharedAccessSignature={SAS}"
            },
            "az://cont",
            "https://acct.blob.core.windows.net",
        ),
        ({"AZURE_STORAGE_ACCOUNT": "acct"}, "az://cont", "https://acct.blob.core.windows.net"),
    ],
)
def test_where_requests_go(environ: dict[str, str], url: str, endpoint: str) -> None:
    assert chosen(environ, url).endpoint == endpoint


@pytest.mark.parametrize(
    "environ, url, told",
    [
        ({"AZURE_STORAGE_AUTH_TYPE": "foo"}, "as://acct/cont", "AZURE_STORAGE_AUTH_TYPE is 'foo', it may be one of key, sas"),
        ({"AZURE_STORAGE_AUTH_TYPE": "key"}, "as://acct/cont", "asks for a key, but AZURE_STORAGE_KEY is not set"),
        ({"AZURE_STORAGE_AUTH_TYPE": "sas"}, "as://acct/cont", "asks for a SAS token, but AZURE_STORAGE_SAS_TOKEN is not set"),
        ({"AZURE_STORAGE_KEY": "not base64!"}, "as://acct/cont", "AZURE_STORAGE_KEY is not an account key"),
        ({"AZURE_STORAGE_SAS_TOKEN": "not a token"}, "as://acct/cont", "AZURE_STORAGE_SAS_TOKEN is not a SAS token"),
        ({"AZURE_STORAGE_ACCOUNT": "other"}, "as://acct/cont", "the account 'acct', but AZURE_STORAGE_ACCOUNT 'other'"),
        (
            {"AZURE_STORAGE_CONNECTION_STRING": STRING},
            "as://other/cont",
            "account 'other', but AccountName in AZURE_STORAGE_CONNECTION_STRING 'acct'",
        ),
        (
            {"AZURE_STORAGE_SERVICE_ENDPOINT": "https://other.blob.core.windows.net"},
            "as://acct/cont",
            "but AZURE_STORAGE_SERVICE_ENDPOINT 'other'",
        ),
        ({"AZURE_STORAGE_SERVICE_ENDPOINT": "acct.blob.core.windows.net"}, "as://acct/cont", "should be a URL"),
        (
            {"AZURE_STORAGE_AUTH_TYPE": "default"},
            "as://localhost:10000/acct/cont",
            "an identity's token is only sent by https, and the endpoint is http://localhost:10000/acct: use https, or",
        ),
        ({}, "az://cont/p", "names no account, and AZURE_STORAGE_ACCOUNT is not set: set it, or write as://ACCOUNT/cont/p"),
        (
            {"AZURE_STORAGE_KEY": KEY},
            "as://models.example.com/cont",
            "the account that the key belongs to: set AZURE_STORAGE_ACC",
        ),
        ({"AZURE_STORAGE_CONNECTION_STRING": KEY}, "as://acct/cont", "should hold AccountName and AccountKey"),
        ({"AZURE_STORAGE_CONNECTION_STRING": "pasted;half"}, "as://acct/cont", "is no connection string"),
        (
            {"AZURE_STORAGE_CONNECTION_STRING": "DefaultEndpointsProtocol=https"},
            "as://acct/cont",
            "is no connection string|should hold",
        ),
        ({"AZURE_STORAGE_CONNECTION_STRING": f"AccountKey={KEY}"}, "as://acct/cont", "should hold AccountName and AccountKey"),
    ],
)
def test_what_cannot_be_says_why(environ: dict[str, str], url: str, told: str) -> None:
    with pytest.raises(StorageError, match=told) as caught:
        chosen(environ, url)
    assert KEY not in str(caught.value) and "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "access, expected",
    [
        (Access("key", "acct", "https://e", KEY), AzureNamedKeyCredential),
        (Access("sas", "acct", "https://e", SAS), AzureSasCredential),
        (Access("managed_identity", "acct", "https://e"), ManagedIdentityCredential),
        (Access("default", "acct", "https://e"), DefaultAzureCredential),
        (Access("anonymous", "acct", "https://e"), type(None)),
    ],
)
def test_each_kind_is_a_credential_of_azures_library(access: Access, expected: type, azure: pytest.MonkeyPatch) -> None:
    assert isinstance(credential(access), expected)


@pytest.mark.parametrize("client_id", ["", "11111111-2222-3333-4444-555555555555"])
def test_an_identity_is_asked_for_by_its_client_id(client_id: str, azure: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    azure.setattr("moorage_azure.containers.ManagedIdentityCredential", lambda **given: seen.append(given))
    credential(chosen({"AZURE_STORAGE_AUTH_TYPE": "managed_identity", "AZURE_STORAGE_CLIENT_ID": client_id}))
    assert seen == [{"client_id": client_id or None}]


FILE = {
    "": {"account_str": "acct", "account_key": KEY},
    "as://bb2/cont": {"account_str": "bb2", "account_key": KEY, "auth_type": "anonymous"},
    "as://bb2/cont/deep": {"account_str": "bb2", "auth_type": "managed_identity", "client_id": "id"},
    "abfss://lake@bb2.dfs.core.windows.net": {"sas_token": SAS, "account_str": "", "account_key": ""},
}


def credential_file(azure: pytest.MonkeyPatch, folder: Path, entries: object) -> None:
    path = folder / "credentials.json"
    path.write_text(json.dumps({"as": entries}))
    azure.setenv("TRITON_CLOUD_CREDENTIAL_PATH", str(path))


@pytest.mark.parametrize(
    "url, kind",
    [
        ("as://acct/cont/p", "key"),
        ("as://bb2/cont", "anonymous"),
        ("as://bb2/cont/x", "anonymous"),
        ("as://bb2.blob.core.windows.net/cont/x", "anonymous"),
        ("abfss://cont@bb2.dfs.core.windows.net/deep", "managed_identity"),
        ("as://bb2/cont/deep/er", "managed_identity"),
        ("as://bb2/cont/deeper", "anonymous"),
        ("abfss://lake@bb2.dfs.core.windows.net/x", "sas"),
    ],
)
def test_the_file_says_which_by_the_longest_name(url: str, kind: str, azure: pytest.MonkeyPatch, tmp_path: Path) -> None:
    credential_file(azure, tmp_path, FILE)
    azure.setenv("AZURE_STORAGE_SAS_TOKEN", SAS)
    storage = AzureStorage()
    storage.place(url)
    assert storage.access(url).kind == kind
    storage.close()


def test_without_a_name_that_fits_the_environment_counts(azure: pytest.MonkeyPatch, tmp_path: Path) -> None:
    credential_file(azure, tmp_path, {"as://bb2": FILE["as://bb2/cont"]})
    azure.setenv("AZURE_STORAGE_SAS_TOKEN", SAS)
    storage = AzureStorage()
    storage.place("as://bb22/cont")
    assert storage.access("as://bb22/cont").kind == "sas"
    storage.close()


@pytest.mark.parametrize(
    "entries, told",
    [
        ({"": {"account_str": "other", "account_key": KEY}}, "but 'account_str' in the file that TRITON_CLOUD_CRED.* 'other'"),
        ({"": {"account_kye": KEY}}, "has the field 'account_kye'; known are account_str, account_key"),
        ({"": {"account_key": 7}}, "'account_key' of an entry under \"as\" should be a text"),
        ({"": KEY}, 'an entry under "as" should hold account_str, account_key'),
        ({"": {"account_key": "?"}}, "'account_key' in the file .* is not an account key"),
        ({"": {"auth_type": "none"}}, "'auth_type' in the file .* is 'none', it may be one of"),
    ],
)
def test_entries_that_cannot_be_are_refused(entries: object, told: str, azure: pytest.MonkeyPatch, tmp_path: Path) -> None:
    credential_file(azure, tmp_path, entries)
    with pytest.raises(StorageError, match=told) as caught:
        AzureStorage().place("as://acct/cont")
    assert KEY not in str(caught.value)


def test_anonymous_access_for_want_of_credentials_is_told(azure: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    storage = AzureStorage()
    with caplog.at_level(logging.INFO):
        storage.place("as://acct/cont")
    storage.close()
    assert "no credentials are set" in caplog.text


SECRETS = st.binary(min_size=16, max_size=64).map(lambda content: base64.b64encode(content).decode())


@given(SECRETS, st.sampled_from(KINDS), st.sampled_from(["acct", "other"]))
def test_no_secret_is_in_any_representation(secret: str, kind: str, account: str) -> None:
    environ = {
        "AZURE_STORAGE_ACCOUNT": account,
        "AZURE_STORAGE_KEY": secret,
        "AZURE_STORAGE_SAS_TOKEN": f"sv=1&sig={secret}",
        "AZURE_STORAGE_CONNECTION_STRING": f"AccountName={account};AccountKey={secret}",
        "AZURE_STORAGE_AUTH_TYPE": kind,
    }
    settings = from_environment(environ)
    assert secret not in repr(settings)
    assert secret not in repr(from_file({"account_key": secret, "sas_token": secret, "connection_string": secret}))
    if account == "acct":
        assert secret not in repr(choose(ADDRESS, settings))
        return
    with pytest.raises(StorageError) as caught:
        choose(ADDRESS, settings)
    assert secret not in str(caught.value)
