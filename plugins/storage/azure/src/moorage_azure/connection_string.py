"""Connection strings: "AccountName=…;AccountKey=…;BlobEndpoint=…", as Azure's portal and emulators give them."""

from __future__ import annotations

from typing import Final

from attrs import evolve

from moorage.errors import StorageError
from moorage_azure.settings import Settings
from moorage_azure.urls import EMULATOR, PUBLIC_CLOUD, account_of, default_endpoint

_EMULATOR_KEY: Final = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""No secret: all emulators have it."""


def applied(settings: Settings) -> Settings:
    """The settings with what their connection string says in place of it, unless something else is asked for.

    Raises StorageError for one that is none; it shows nothing of it.
    """
    asked = settings.auth_type.lower()
    other = {"": "", "key": settings.key, "sas": settings.sas}.get(asked, asked)
    if not settings.connection_string or other:
        return settings
    parts = _parts(settings)
    account, key, sas = (parts.get(name, "") for name in ("accountname", "accountkey", "sharedaccesssignature"))
    name = settings.name("connection_string")
    if parts.get("usedevelopmentstorage", "").lower() == "true":
        account, key = EMULATOR, _EMULATOR_KEY
    endpoint = _endpoint(parts, account)
    account = account or account_of(endpoint)
    if not account or not (key or sas or settings.auth_type):
        raise StorageError(
            f"{name} should hold AccountName and AccountKey, or BlobEndpoint and SharedAccessSignature: "
            "copy it again as a whole"
        )
    names = {what: f"{part} in {name}" for what, part in (("account", "AccountName"), ("key", "AccountKey"))}
    names |= {"endpoint": f"BlobEndpoint in {name}", "sas": f"SharedAccessSignature in {name}"}
    return evolve(settings, account=account, key=key, sas=sas, endpoint=endpoint, names={**settings.names, **names})


def _parts(settings: Settings) -> dict[str, str]:
    pairs = [part.partition("=") for part in settings.connection_string.split(";") if part.strip()]
    if not all(separator for _, separator, _ in pairs):
        raise StorageError(
            f"{settings.name('connection_string')} is no connection string, which has the form NAME=VALUE;NAME=VALUE…: "
            "copy it again as a whole, and quote it in a shell"
        )
    return {name.strip().lower(): value.strip() for name, _, value in pairs}


def _endpoint(parts: dict[str, str], account: str) -> str:
    if parts.get("blobendpoint"):
        return parts["blobendpoint"].partition("?")[0].rstrip("/")
    if account == EMULATOR and not parts.get("endpointsuffix"):
        return default_endpoint(account)
    protocol = parts.get("defaultendpointsprotocol") or "https"
    return f"{protocol}://{account}.blob.{parts.get('endpointsuffix') or PUBLIC_CLOUD}" if account else ""
