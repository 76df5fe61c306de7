"""Which credentials are chosen, and what is said of those that cannot be used. Nothing is asked of any server."""

from __future__ import annotations

import json
import socket
import traceback
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import google.auth.compute_engine
import google.auth.identity_pool
import google.auth.impersonated_credentials
import google.oauth2.credentials
import google.oauth2.service_account
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from moorage.errors import StorageError
from moorage_gcs import client, credentials
from moorage_gcs.storage import GcsStorage

USER = {"type": "authorized_user", "client_id": "id", "client_secret": "a-secret", "refresh_token": "another-secret"}
EXTERNAL = {
    "type": "external_account",
    "audience": "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/q",
    "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
    "token_url": "https://sts.googleapis.com/v1/token",
    "credential_source": {"file": "/var/run/token"},
}
IMPERSONATED = {
    "type": "impersonated_service_account",
    "service_account_impersonation_url": "https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/a@b:generateAccessToken",
    "source_credentials": USER,
}
KeyFile = Callable[..., str]


@pytest.fixture(scope="session")
def service_account() -> dict[str, str]:
    private = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    kind = serialization.PrivateFormat.PKCS8
    pem = private.private_bytes(serialization.Encoding.PEM, kind, serialization.NoEncryption()).decode()
    uri = "https://oauth2.googleapis.com/token"
    return {"type": "service_account", "client_email": "a@b.iam", "private_key": pem, "token_uri": uri, "private_key_id": "1"}


@pytest.fixture
def key_file(tmp_path: Path) -> KeyFile:
    def key_file(content: Any = USER, name: str = "key.json") -> str:
        file = tmp_path / name
        file.write_text(content if isinstance(content, str) else json.dumps(content))
        return str(file)

    return key_file


def refused(url: str = "gs://bkt/models") -> str:
    """What the error says. Whatever of it could be shown has no secret in it."""
    with pytest.raises(StorageError) as caught:
        credentials.choose(url)
    assert "secret" not in "".join(traceback.format_exception(caught.value))
    return str(caught.value)


@pytest.mark.parametrize(
    "content, made",
    [
        pytest.param(USER, google.oauth2.credentials.Credentials, id="user"),
        pytest.param(EXTERNAL, google.auth.identity_pool.Credentials, id="external account"),
        pytest.param(IMPERSONATED, google.auth.impersonated_credentials.Credentials, id="impersonated"),
    ],
)
def test_key_files_of_many_kinds(content: Any, made: type, key_file: KeyFile, gcs: pytest.MonkeyPatch) -> None:
    gcs.setenv("GOOGLE_APPLICATION_CREDENTIALS", key_file(content))
    assert type(credentials.choose("gs://bkt")) is made


def test_service_accounts_may_only_read(service_account: dict[str, str], key_file: KeyFile, gcs: pytest.MonkeyPatch) -> None:
    gcs.setenv("GOOGLE_APPLICATION_CREDENTIALS", key_file(service_account))
    chosen = credentials.choose("gs://bkt")
    assert isinstance(chosen, google.oauth2.service_account.Credentials)
    assert [scope.rpartition("/")[2] for scope in chosen.scopes] == ["devstorage.read_only"]


@pytest.mark.parametrize(
    "content, said",
    [
        ("{", "is not JSON"),
        ("[]", "no key file of Google's"),
        ({"type": "a-secret"}, 'its "type" should be one of service_account, authorized_user'),
        ({"client_secret": "a-secret"}, 'its "type" should be one of'),
        ({**USER, "refresh_token": None} | {"type": "service_account"}, "no usable service_account credentials"),
        (
            {"type": "service_account", "private_key": "secret", "client_email": "a", "token_uri": "b"},
            "no usable service_account",
        ),
        ({key: EXTERNAL[key] for key in EXTERNAL if key != "credential_source"}, "it lacks 'credential_source'"),
    ],
)
def test_a_key_file_that_is_none_is_named(content: Any, said: str, key_file: KeyFile, gcs: pytest.MonkeyPatch) -> None:
    file = key_file(content)
    gcs.setenv("GOOGLE_APPLICATION_CREDENTIALS", file)
    assert f"the file {file} (GOOGLE_APPLICATION_CREDENTIALS)" in refused()
    assert said in refused()


def test_a_missing_key_file_is_no_anonymity(gcs: pytest.MonkeyPatch, tmp_path: Path) -> None:
    gcs.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "gone.json"))
    assert "gone.json (GOOGLE_APPLICATION_CREDENTIALS) cannot be read: No such file or directory" in refused()
    (tmp_path / "gone.json").mkdir()
    assert "cannot be read: Is a directory" in refused()
    with pytest.raises(StorageError, match=r"model repository gs://bkt/models: the file .*gone\.json"):
        GcsStorage().list("gs://bkt/models")


def test_no_credentials_at_all_is_no_anonymity(gcs: pytest.MonkeyPatch) -> None:
    assert "Set GOOGLE_APPLICATION_CREDENTIALS to a key file, or MOORAGE_GCS_ANONYMOUS=true" in refused()


def test_the_login_of_gcloud_is_used(key_file: KeyFile, gcs: pytest.MonkeyPatch, tmp_path: Path) -> None:
    gcs.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    key_file(USER, "application_default_credentials.json")
    assert credentials.choose("gs://bkt").refresh_token == USER["refresh_token"]
    key_file("nonsense", "application_default_credentials.json")
    assert "(gcloud auth application-default login) is not JSON" in refused()


def test_gcloud_is_looked_for_at_home(gcs: pytest.MonkeyPatch, key_file: KeyFile, tmp_path: Path) -> None:
    gcs.delenv("CLOUDSDK_CONFIG")
    gcs.setenv("HOME", str(tmp_path))
    assert f"{tmp_path}/.config/gcloud/application_default_credentials.json does not exist" in refused()
    (tmp_path / ".config" / "gcloud").mkdir(parents=True)
    key_file(USER, ".config/gcloud/application_default_credentials.json")
    assert credentials.choose("gs://bkt").client_id == "id"


@pytest.mark.parametrize("value, anonymous", [("true", True), ("1", True), ("YES", True), ("false", False), ("", False)])
def test_anonymity_is_asked_for(value: str, anonymous: bool, key_file: KeyFile, gcs: pytest.MonkeyPatch) -> None:
    gcs.setenv("GOOGLE_APPLICATION_CREDENTIALS", key_file())
    gcs.setenv("MOORAGE_GCS_ANONYMOUS", value)
    assert (credentials.choose("gs://bkt") == "anon") is anonymous


def test_anonymity_must_be_yes_or_no(gcs: pytest.MonkeyPatch) -> None:
    gcs.setenv("MOORAGE_GCS_ANONYMOUS", "perhaps")
    assert "MOORAGE_GCS_ANONYMOUS must be true or false, not 'perhaps'" in refused()


@pytest.mark.parametrize(
    "host, url",
    [("", ""), ("default", ""), ("127.0.0.1:4443", "http://127.0.0.1:4443"), ("https://gcs.local/", "https://gcs.local")],
)
def test_an_emulator_needs_no_credentials(host: str, url: str, gcs: pytest.MonkeyPatch) -> None:
    gcs.setenv("STORAGE_EMULATOR_HOST", host)
    assert credentials.emulator() == url
    if url:
        assert credentials.choose("gs://bkt") == "anon"
        assert client.connect("gs://bkt").base == f"{url}/storage/v1/"


def test_the_file_of_credentials_goes_first(key_file: KeyFile, gcs: pytest.MonkeyPatch) -> None:
    all_of, deep = key_file({**USER, "client_id": "all"}, "all.json"), key_file({**USER, "client_id": "deep"}, "deep.json")
    gcs.setenv("TRITON_CLOUD_CREDENTIAL_PATH", key_file({"gs": {"": all_of, "gs://bkt/deep": deep}}, "credentials.json"))
    gcs.setenv("GOOGLE_APPLICATION_CREDENTIALS", key_file({**USER, "client_id": "environment"}))
    storage = GcsStorage()
    chosen = {
        url: storage.place(url).filesystem.credentials.credentials.client_id
        for url in ("gs://bkt", "gs://bkt/deeper", "gs://bkt/deep/x", "gcs://bkt//deep/")
    }
    assert list(chosen.values()) == ["all", "all", "deep", "deep"]


def test_stores_that_the_file_leaves_out_have_the_environment(key_file: KeyFile, gcs: pytest.MonkeyPatch) -> None:
    gcs.setenv("GOOGLE_APPLICATION_CREDENTIALS", key_file())
    contents: list[Any] = [{"s3": {"": {}}}, {"gs": {"gs://other": "nowhere.json"}}, {"gs": {"": ""}}]
    for content in contents:
        gcs.setenv("TRITON_CLOUD_CREDENTIAL_PATH", key_file(content, "credentials.json"))
        assert credentials.choose("gs://bkt").client_id == "id"


@pytest.mark.parametrize(
    "value, said",
    [
        ({"private_key": "a-secret"}, 'the values under "gs" should be paths of key files'),
        ("/no/such/key.json", "the file /no/such/key.json (TRITON_CLOUD_CREDENTIAL_PATH) cannot be read"),
    ],
)
def test_what_is_wrong_in_the_file_of_credentials(value: Any, said: str, key_file: KeyFile, gcs: pytest.MonkeyPatch) -> None:
    gcs.setenv("TRITON_CLOUD_CREDENTIAL_PATH", key_file({"gs": {"": value}}))
    gcs.setenv("MOORAGE_GCS_ANONYMOUS", "true")
    assert said in refused()


class MetadataServer(BaseHTTPRequestHandler):
    flavour = "Google"

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Metadata-Flavor", self.flavour)
        self.end_headers()

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def metadata_server(gcs: pytest.MonkeyPatch) -> Iterator[None]:
    gcs.delenv("NO_GCE_CHECK")
    gcs.setattr(credentials, "_PRODUCT", Path("/no/such/file"))
    with HTTPServer(("127.0.0.1", 0), MetadataServer) as server:
        gcs.setenv("GCE_METADATA_IP", f"127.0.0.1:{server.server_port}")
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield
        server.shutdown()
        thread.join()


def test_the_metadata_server_is_found(metadata_server: None) -> None:
    assert type(credentials.choose("gs://bkt")) is google.auth.compute_engine.Credentials


def test_another_server_at_its_address_is_none(metadata_server: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MetadataServer, "flavour", "Other")
    assert "no metadata server answers" in refused()


def test_a_server_that_never_answers_is_given_up(gcs: pytest.MonkeyPatch) -> None:
    gcs.delenv("NO_GCE_CHECK")
    gcs.setattr(credentials, "_PRODUCT", Path("/no/such/file"))
    gcs.setattr(credentials, "_PROBE_SECONDS", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        gcs.setenv("GCE_METADATA_IP", f"127.0.0.1:{silent.getsockname()[1]}")
        assert not credentials.on_google()


def test_machines_of_google_are_known(gcs: pytest.MonkeyPatch, tmp_path: Path) -> None:
    gcs.delenv("NO_GCE_CHECK")
    gcs.setattr(credentials, "_PRODUCT", tmp_path / "product_name")
    (tmp_path / "product_name").write_text("Google Compute Engine\n")
    assert credentials.on_google()


def test_nothing_that_is_shown_has_a_secret(key_file: KeyFile, gcs: pytest.MonkeyPatch) -> None:
    gcs.setenv("GOOGLE_APPLICATION_CREDENTIALS", key_file())
    storage = GcsStorage()
    place = storage.place("gs://bkt/models")
    assert "secret" not in f"{place!r} {storage!r} {place.filesystem!r} {storage.__dict__!r}"


def test_who_pays_is_sent_along(gcs: pytest.MonkeyPatch) -> None:
    gcs.setenv("MOORAGE_GCS_ANONYMOUS", "true")
    assert client.connect("gs://bkt")._get_params({}) == {}
    gcs.setenv("MOORAGE_GCS_USER_PROJECT", "my-project")
    assert client.connect("gs://bkt")._get_params({}) == {"userProject": "my-project"}
