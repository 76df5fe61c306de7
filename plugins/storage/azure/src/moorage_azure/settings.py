"""What a user has said about credentials: in the environment, or in the file that TRITON_CLOUD_CREDENTIAL_PATH names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from attrs import field, frozen

from moorage.errors import StorageError
from moorage.storage.credentials import VARIABLE

VARIABLES: Final[Mapping[str, tuple[str, ...]]] = {
    "account": ("AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_ACCOUNT_NAME"),
    "key": ("AZURE_STORAGE_KEY", "AZURE_STORAGE_ACCOUNT_KEY"),
    "sas": ("AZURE_STORAGE_SAS_TOKEN",),
    "connection_string": ("AZURE_STORAGE_CONNECTION_STRING",),
    "auth_type": ("AZURE_STORAGE_AUTH_TYPE",),
    "client_id": ("AZURE_STORAGE_CLIENT_ID",),
    "endpoint": ("AZURE_STORAGE_SERVICE_ENDPOINT",),
}
"""Where the environment says what; the first that is set counts."""
FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "account": ("account_str",),
    "key": ("account_key",),
    "sas": ("sas_token",),
    "connection_string": ("connection_string",),
    "auth_type": ("auth_type",),
    "client_id": ("client_id",),
    "endpoint": ("endpoint",),
}
"""The same in an entry of the credential file."""
CHAIN: Final = ("AZURE_CLIENT_SECRET", "AZURE_CLIENT_CERTIFICATE_PATH", "AZURE_FEDERATED_TOKEN_FILE")
"""Variables that are set where the chain of credentials of Azure's own libraries is meant to be used."""


@frozen
class Settings:
    """Settings as they were given; empty where nothing was said. `names` says how the user calls each."""

    account: str = ""
    key: str = field(default="", repr=False)
    sas: str = field(default="", repr=False)
    connection_string: str = field(default="", repr=False)
    auth_type: str = ""
    client_id: str = ""
    endpoint: str = ""
    chain: bool = False
    """Whether the environment addresses the chain of credentials of Azure's own libraries."""
    names: Mapping[str, str] = field(factory=dict, eq=False, repr=False)

    def name(self, what: str) -> str:
        """How the user calls a setting, such as AZURE_STORAGE_KEY for "key"."""
        return self.names.get(what, VARIABLES[what][0])


def from_environment(environ: Mapping[str, str]) -> Settings:
    """What the variables say that Triton and Azure's own tools read."""
    return _settings(environ, VARIABLES, "{}", chain=any(environ.get(name) for name in CHAIN))


def from_file(entry: Any) -> Settings:
    """What an entry under "as" of the credential file says. Raises StorageError for one of another form."""
    known = [name for names in FIELDS.values() for name in names]
    if not isinstance(entry, dict):
        raise StorageError(f'{VARIABLE}: an entry under "as" should hold {", ".join(known)}')
    for name, value in entry.items():
        if name not in known:
            raise StorageError(f"{VARIABLE}: an entry under \"as\" has the field '{name}'; known are {', '.join(known)}")
        if not isinstance(value, str):
            raise StorageError(f"{VARIABLE}: '{name}' of an entry under \"as\" should be a text")
    return _settings(entry, FIELDS, f"'{{}}' in the file that {VARIABLE} names")


def _settings(said: Mapping[str, str], names: Mapping[str, tuple[str, ...]], told: str, *, chain: bool = False) -> Settings:
    used = {what: next((name for name in some if said.get(name, "").strip()), some[0]) for what, some in names.items()}
    values = {what: said.get(name, "").strip() for what, name in used.items()}
    return Settings(**values, chain=chain, names={what: told.format(name) for what, name in used.items()})
