"""Servers tell no secret, however much they log, and whatever goes wrong."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from attrs import frozen

from emulators.azure import ACCOUNT, KEY
from emulators.azure import kind as azure_kind
from emulators.gcs import kind as gcs_kind
from emulators.proxy import ALWAYS, Fault, Proxy, containing, of_kind
from emulators.s3 import kind as s3_kind
from inputs.live import LiveServer, start
from inputs.models import VALUE, io
from inputs.waiting import until

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(600)]

CONFIG = f'backend: "python"\n{io()}'
FLAGS = ("--model-control-mode=poll", "--repository-poll-secs=0.2", "--repository-settle-secs=0", "--log-verbose=2")
TOKEN = "c2VjcmV0LXRva2Vu-0123456789"


@frozen(eq=False)
class Guarded:
    """A repository in a store that is opened with secrets."""

    url: str
    proxy: Proxy
    put: Callable[[str, bytes], Any]
    environment: Mapping[str, str]
    secrets: tuple[str, ...]


@pytest.fixture
def s3(aws: pytest.MonkeyPatch, moto: str, s3_bucket: Any) -> Iterator[Guarded]:
    secrets = {"AWS_SECRET_ACCESS_KEY": "c2VjcmV0LWtleQ/0123456789", "AWS_SESSION_TOKEN": TOKEN}
    with Proxy(moto, kind=s3_kind) as proxy:
        url = f"s3://{proxy.url}/{s3_bucket.name}/models"
        yield Guarded(
            url, proxy, s3_bucket.put, {"AWS_ACCESS_KEY_ID": "id", "AWS_MAX_ATTEMPTS": "2", **secrets}, tuple(secrets.values())
        )


@pytest.fixture
def azure_sas(azure: pytest.MonkeyPatch, azurite: str, azure_container: Any) -> Iterator[Guarded]:
    from azure.storage.blob import generate_container_sas

    soon = datetime.now(UTC) + timedelta(hours=1)
    token = generate_container_sas(ACCOUNT, azure_container.name, account_key=KEY, permission="rl", expiry=soon)
    signature = token.rpartition("sig=")[2].partition("&")[0]
    with Proxy(azurite, kind=azure_kind) as proxy:
        url = f"as://{proxy.url}/{ACCOUNT}/{azure_container.name}/models"
        yield Guarded(url, proxy, azure_container.put, {"AZURE_STORAGE_SAS_TOKEN": token}, (signature,))


@pytest.fixture
def gcs_account(gcs: pytest.MonkeyPatch, fake_gcs: str, gcs_bucket: Any, tmp_path: Path) -> Iterator[Guarded]:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    form, none = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    key = rsa.generate_private_key(65537, 2048).private_bytes(serialization.Encoding.PEM, form, none).decode()
    with Proxy(fake_gcs, kind=gcs_kind) as proxy:
        account = {"type": "service_account", "client_email": "a@b.c", "private_key": key, "token_uri": f"{proxy.url}/token"}
        (tmp_path / "account.json").write_text(json.dumps(account))
        (tmp_path / "credentials.json").write_text(json.dumps({"gs": {"": str(tmp_path / "account.json")}}))
        grant = {"access_token": TOKEN, "token_type": "Bearer", "expires_in": 3600}
        headers = {"Content-Type": "application/json"}
        answer = Fault(containing("/token"), status=200, headers=headers, body=json.dumps(grant).encode(), times=ALWAYS)
        proxy.faults.append(answer)
        environment = {"STORAGE_EMULATOR_HOST": proxy.url, "TRITON_CLOUD_CREDENTIAL_PATH": str(tmp_path / "credentials.json")}
        secrets = (TOKEN, *key.splitlines()[1:-1])
        yield Guarded(f"gs://{gcs_bucket.name}/models", proxy, gcs_bucket.put, environment, secrets)


@pytest.fixture(params=["s3", "azure_sas", "gcs_account"])
def store(request: pytest.FixtureRequest) -> Guarded:
    found: Guarded = request.getfixturevalue(request.param)
    return found


def put(store: Guarded, number: int, **more: str) -> None:
    files = {"config.pbtxt": CONFIG, f"{number}/model.py": VALUE.format(value=float(number)), **more}
    for path, content in files.items():
        store.put(f"models/m/{path}", content.encode())


def leaks(store: Guarded, text: str) -> list[str]:
    forms = {form for secret in store.secrets for form in (secret, quote(secret, safe=""))}
    return [form for form in forms if form in text]


@pytest.fixture
def server(store: Guarded, tmp_path: Path) -> Iterator[LiveServer]:
    put(store, 1)
    made = start(tmp_path, [f"--model-repository={store.url}", *FLAGS], store.environment)
    yield made
    made.close()


@contextmanager
def told_once_more(server: LiveServer, text: str) -> Iterator[None]:
    """What happens meanwhile has the server log a text."""
    before = server.log.count(text)
    yield
    until(lambda: server.log.count(text) > before)


def test_no_secret_is_in_the_log_or_an_answer(store: Guarded, server: LiveServer) -> None:
    until(lambda: server.states("m") == {"1": "READY"})
    kept = list(store.proxy.faults)
    for fault in (
        Fault(of_kind("list"), status=403, times=ALWAYS),
        Fault(of_kind("list"), drop=True, times=ALWAYS),
    ):
        with told_once_more(server, "cannot be read"):
            store.proxy.faults.append(fault)
        answers = [server.post("/v2/repository/index").body, server.load("m").body]
        assert not leaks(store, b"".join(answers).decode())
        with told_once_more(server, "read again"):
            store.proxy.faults[:] = kept
    store.proxy.faults.append(Fault(containing("weights"), drop=True, times=ALWAYS))
    put(store, 2, **{"2/weights": "w"})
    until(lambda: server.states("m").get("2") == "UNAVAILABLE")
    assert server.output("m") == [1]
    assert not leaks(store, server.post("/v2/repository/index").body.decode())
    with told_once_more(server, "cannot be read"):
        store.proxy.close()
    assert server.close() == 0
    assert not leaks(store, server.log)
