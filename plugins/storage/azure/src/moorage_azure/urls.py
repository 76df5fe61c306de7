"""What the URL of a repository in Azure Blob Storage means.

as://ACCOUNT/CONTAINER/path                                Triton's form
as://ACCOUNT.blob.core.windows.net/CONTAINER/path          or the host of another cloud
as://https://models.example.com/CONTAINER/path             an account behind a domain of one's own
as://127.0.0.1:10000/ACCOUNT/CONTAINER/path                an emulator: the account comes behind the host
abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/path        Data Lake's form
az://CONTAINER/path                                        the account is named by the environment
"""

from __future__ import annotations

import re
from typing import Final, NoReturn
from urllib.parse import urlsplit

from attrs import frozen

from moorage.errors import InvalidArgument

SCHEMES: Final = ("as", "az", "abfs", "abfss")
PUBLIC_CLOUD: Final = "core.windows.net"
EMULATOR: Final = "devstoreaccount1"
"""The account that every emulator has."""

_EMBEDDED: Final = re.compile(r"(https?)://(.*)", re.IGNORECASE | re.DOTALL)
_HOST: Final = re.compile(r"([^.]+)\.((?:[^.]+\.)?)(blob|dfs|file|queue|table|web)\.(.+)")
_ACCOUNT: Final = re.compile(r"[a-z0-9]{3,24}")
_CONTAINER: Final = re.compile(r"\$(root|web|logs)|(?=.{3,63}$)[a-z0-9](-?[a-z0-9])+")
_NUMERIC: Final = re.compile(r"[0-9.]+|.*:.*")
_OWN_MACHINE: Final = ("localhost", "::1")


@frozen
class Address:
    """Where a repository is.

    `account` is empty if the URL leaves it to the environment. `endpoint` is the URL of the Blob service as far as the URL says
    more than the account's name; if it is `explicit` (a protocol or a port is given), it outranks what the environment says.
    """

    account: str
    container: str
    prefix: str
    endpoint: str = ""
    explicit: bool = False

    @property
    def canonical(self) -> str:
        """The repository in Triton's form."""
        return "/".join(filter(None, (f"as://{self.account}", self.container, self.prefix)))


def default_endpoint(account: str) -> str:
    """The URL of the Blob service of an account of which only the name is known."""
    if account == EMULATOR:
        return f"http://127.0.0.1:10000/{account}"
    return f"https://{account}.blob.{PUBLIC_CLOUD}"


def account_of(endpoint: str) -> str:
    """The account that an endpoint belongs to; empty if it cannot be seen (a domain of one's own)."""
    authority, _, path = endpoint.partition("://")[2].partition("/")
    match = _HOST.fullmatch(authority.lower())
    return match[1].removesuffix("-secondary") if match else path.partition("/")[0]


def parse(url: str) -> Address:
    """Understand a URL. Raises InvalidArgument for one that cannot be meant, with what was understood and what to write."""
    scheme, _, rest = url.partition("://")
    if "?" in rest:
        # What follows may be a secret, so it is not repeated.
        before = url.partition("?")[0]
        raise InvalidArgument(
            f"model repository '{before}': remove the '?' and what follows; a SAS token belongs in AZURE_STORAGE_SAS_TOKEN"
        )
    embedded = _EMBEDDED.fullmatch(rest)
    protocol, rest = (embedded[1].lower(), embedded[2]) if embedded else ("", rest)
    authority, _, path = rest.partition("/")
    parts = [part for part in path.split("/") if part]
    if any(part in (".", "..") for part in parts):
        _refuse(url, "a path in Azure has no '.' or '..' parts; write the path itself")
    if "@" in authority:
        container, _, host = authority.rpartition("@")
        return _located(url, protocol, host, [container, *parts])
    if scheme != "as" and not protocol and not re.search(r"[.:]", authority):
        return _address(url, "", [authority, *parts])
    return _located(url, protocol, authority, parts)


def _located(url: str, protocol: str, host: str, parts: list[str]) -> Address:
    name, port = _host(url, host)
    match = _HOST.fullmatch(name)
    if match:
        return _at_service(url, protocol, port, match, parts)
    if protocol or port or "." in name or name in _OWN_MACHINE:
        return _at_host(url, protocol, host, parts)
    return _address(url, _account(url, name), parts)


def _host(url: str, host: str) -> tuple[str, str]:
    """Its name in lower case, without brackets, and its port; empty if it has none."""
    try:
        split = urlsplit(f"//{host}")
        return split.hostname or "", str(split.port or "")
    except ValueError as error:
        _refuse(url, f"'{host}' is no host: {error}")


def _at_service(url: str, protocol: str, port: str, match: re.Match[str], parts: list[str]) -> Address:
    """Under a host such as "account.blob.core.windows.net"."""
    label, zone, service, domain = match.groups()
    account = _account(url, label.removesuffix("-secondary"))
    if service not in ("blob", "dfs"):
        _refuse(url, f"that is the account's {service} service; models are read from its blobs: as://{account}/CONTAINER/path")
    if not protocol and not port and not zone and label == account and domain == PUBLIC_CLOUD:
        return _address(url, account, parts)
    endpoint = f"{protocol or ('http' if port else 'https')}://{label}.{zone}blob.{domain}" + (f":{port}" if port else "")
    return _address(url, account, parts, endpoint, explicit=bool(protocol or port))


def _at_host(url: str, protocol: str, host: str, parts: list[str]) -> Address:
    """Under a domain of one's own, or where the account is the first part of the path, as emulators have it."""
    name, port = _host(url, host)
    if "." in name and not port and not _NUMERIC.fullmatch(name):
        return _address(url, "", parts, f"{protocol or 'https'}://{host}", explicit=True)
    endpoint = f"{protocol or 'http'}://{host}"
    if not parts:
        _refuse(url, f"understood: the host {endpoint}, no account; write as://HOST:PORT/ACCOUNT/CONTAINER/path")
    return _address(url, parts[0], parts[1:], f"{endpoint}/{parts[0]}", explicit=True)


def _address(url: str, account: str, parts: list[str], endpoint: str = "", *, explicit: bool = False) -> Address:
    understood = f"account '{account}'" if account else f"host {endpoint}" if endpoint else "no account"
    if not parts or not parts[0]:
        _refuse(url, f"understood: {understood}, no container; write as://{account or 'ACCOUNT'}/CONTAINER/path")
    if not _CONTAINER.fullmatch(parts[0]):
        _refuse(
            url,
            f"understood: {understood}, container '{parts[0]}', which cannot be one: a container's name has 3 to 63 "
            "lower-case letters, digits and single '-'",
        )
    return Address(account, parts[0], "/".join(parts[1:]), endpoint, explicit)


def _account(url: str, name: str) -> str:
    if not _ACCOUNT.fullmatch(name.lower()):
        _refuse(
            url,
            f"understood: account '{name}', which cannot be one: an account's name has 3 to 24 letters and digits; "
            "write as://ACCOUNT/CONTAINER/path",
        )
    return name.lower()


def _refuse(url: str, why: str) -> NoReturn:
    raise InvalidArgument(f"model repository '{url}': {why}")
