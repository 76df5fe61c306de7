"""Which credentials open an account: decided from the environment or a credential file, without asking Azure."""

from __future__ import annotations

import base64
import binascii
from typing import Final, Literal

from attrs import evolve, field, frozen

from moorage.errors import StorageError
from moorage.storage.credentials import VARIABLE
from moorage_azure.connection_string import applied
from moorage_azure.settings import Settings
from moorage_azure.urls import Address, account_of, default_endpoint

Kind = Literal["key", "sas", "managed_identity", "default", "anonymous"]
KINDS: Final[tuple[Kind, ...]] = ("key", "sas", "managed_identity", "default", "anonymous")


@frozen
class Access:
    """How a repository is reached. `secret` is the account's key or the SAS token."""

    kind: Kind
    account: str
    endpoint: str
    secret: str = field(default="", repr=False)
    client_id: str = ""
    source: str = ""
    """What the credential was taken from, for messages."""


def choose(address: Address, settings: Settings) -> Access:
    """The account, endpoint and credential for an address.

    Raises StorageError for settings that contradict each other or the address, or cannot be meant; it shows no secret.
    """
    settings = applied(settings)
    account = _account(address, settings)
    kind = _kind(settings)
    endpoint = (address.endpoint if address.explicit else "") or _endpoint(settings) or address.endpoint
    access = Access(
        kind,
        account,
        endpoint or default_endpoint(account),
        client_id=settings.client_id,
        source=settings.name("auth_type"),
    )
    if kind == "key":
        return evolve(access, secret=_key(settings, account), source=settings.name("key"))
    if kind in ("managed_identity", "default") and not access.endpoint.startswith("https://"):
        raise StorageError(
            f"an identity's token is only sent by https, and the endpoint is {access.endpoint}: use https, or an account key"
        )
    if kind == "sas":
        return evolve(access, secret=_sas(settings), source=settings.name("sas"))
    return access


def _account(address: Address, settings: Settings) -> str:
    """The one account that the URL and the settings speak of."""
    said = settings.account or account_of(_endpoint(settings))
    if address.account and said and address.account != said.lower():
        name = settings.name("account") if settings.account else settings.name("endpoint")
        raise StorageError(
            f"the URL names the account '{address.account}', but {name} '{said}': correct one of them "
            f"(for repositories in several accounts, name a file with the credentials of each in {VARIABLE})"
        )
    account = address.account or said
    if not account and not address.endpoint:
        raise StorageError(
            f"the URL names no account, and {settings.name('account')} is not set: set it, "
            f"or write as://ACCOUNT/{address.container}{'/' if address.prefix else ''}{address.prefix}"
        )
    return account


def _endpoint(settings: Settings) -> str:
    if settings.endpoint and not settings.endpoint.lower().startswith(("http://", "https://")):
        raise StorageError(f"{settings.name('endpoint')} should be a URL, as in https://ACCOUNT.blob.core.windows.net")
    return settings.endpoint.partition("?")[0].rstrip("/")


def _kind(settings: Settings) -> Kind:
    """What was asked for, or what there is; without anything public containers can be read, as in Triton."""
    asked = settings.auth_type.lower().replace("-", "_")
    if asked:
        for kind in KINDS:
            if kind == asked:
                return kind
        raise StorageError(f"{settings.name('auth_type')} is '{settings.auth_type}', it may be one of {', '.join(KINDS)}")
    if settings.key:
        return "key"
    if settings.sas:
        return "sas"
    if settings.client_id:
        return "managed_identity"
    return "default" if settings.chain else "anonymous"


def _key(settings: Settings, account: str) -> str:
    name = settings.name("key")
    if not settings.key:
        raise StorageError(f"{settings.name('auth_type')} asks for a key, but {name} is not set")
    if not account:
        raise StorageError(f"{name} is set, but not the account that the key belongs to: set {settings.name('account')}")
    try:
        base64.b64decode(settings.key, validate=True)
    except binascii.Error:
        # The cause could show what is in it.
        raise StorageError(
            f"{name} is not an account key, which is a base64 text of 88 characters: copy it again as a whole"
        ) from None
    return settings.key


def _sas(settings: Settings) -> str:
    name = settings.name("sas")
    token = settings.sas.rpartition("?")[2].strip("&")
    if not token:
        raise StorageError(f"{settings.name('auth_type')} asks for a SAS token, but {name} is not set")
    if "sig=" not in token:
        raise StorageError(f"{name} is not a SAS token, which holds 'sig=…' among its parameters: copy it again as a whole")
    return token
