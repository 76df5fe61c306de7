"""What goes wrong with Azure, and the next step. Nothing here holds a secret."""

from __future__ import annotations

import re
from typing import Final

from attrs import frozen

from moorage_azure.credentials import Access
from moorage_azure.settings import VARIABLES

TRANSIENT_STATUS: Final = frozenset({408, 429, 500, 502, 503, 504})

ARCHIVED: Final = "it is in the archive tier, from which nothing can be read: move it to the hot or cool tier"
_ANONYMOUS: Final = (
    "{where} does not exist or is not public, and it was read without credentials: set "
    f"{VARIABLES['key'][0]}, {VARIABLES['sas'][0]} or {VARIABLES['connection_string'][0]}, "
    f"or {VARIABLES['auth_type'][0]}=managed_identity"
)
_FOREIGN: Final = (
    "{endpoint} does not answer as Azure Blob Storage does (HTTP {answer}): check its address, and proxies in between"
)
_REFUSED: Final = "access to {where} was refused: "
_CODES: Final = {
    "ContainerNotFound": "{where} does not exist: create it or correct the URL",
    "ResourceNotFound": "{where} does not exist: create it or correct the URL",
    "ContainerBeingDeleted": "{where} is being deleted",
    "BlobNotFound": "it does not exist (any more)",
    "ConditionNotMet": "it has changed since it was listed; the load can be tried again",
    "BlobArchived": ARCHIVED,
    "AuthorizationPermissionMismatch": _REFUSED + "{source} is valid, but does not allow it; {grant}",
    "InsufficientAccountPermissions": _REFUSED + "{source} is valid, but does not allow it; {grant}",
    "AuthorizationFailure": _REFUSED + "let the account's network rules (firewall) allow this machine; {grant}",
    "AuthorizationSourceIPMismatch": _REFUSED + "{source} is not made for this machine's IP address",
    "AuthorizationProtocolMismatch": _REFUSED + "{source} asks for https, and the endpoint is {endpoint}",
    "AuthorizationResourceTypeMismatch": _REFUSED + "{source} is made for something else; {grant}",
    "AuthorizationServiceMismatch": _REFUSED + "{source} is made for another service; {grant}",
    "KeyBasedAuthenticationNotPermitted": _REFUSED
    + f"the account takes no keys; set {VARIABLES['auth_type'][0]}=managed_identity or default",
    "AccountIsDisabled": "account '{account}' is disabled",
}
"""By Azure's own words for what happened."""

_REJECTED: Final = (
    ("date header", "Azure refuses the request for its date: set this machine's clock"),
    (
        "time frame|expiry|token is expired",
        "{source} has expired or is not valid yet: make a new one, and see whether this machine's clock is right",
    ),
    ("issuer|audience", "{source} leads to an identity of another directory (tenant) than the account's"),
    ("", "{source} does not open account '{account}': copy it again, or correct the account's name"),
)
"""Why credentials were not accepted, by a word in the answer."""

_UNREACHABLE: Final = (
    (
        "resolve|name or service not known|getaddrinfo",
        (
            "no machine is called {host}: correct the account's name; for another cloud than the public one write its host, "
            "as in as://ACCOUNT.blob.core.chinacloudapi.cn/CONTAINER"
        ),
    ),
    ("certificate|ssl", "there is no secure connection to {endpoint}: name its certificate authority in REQUESTS_CA_BUNDLE"),
    ("refused", "{endpoint} refuses connections: see whether the service runs there"),
    (
        "timed out|timeout|unreachable|no route",
        "{endpoint} does not answer: see whether this machine may reach it (firewall, proxy, private endpoint)",
    ),
    ("credential|identity|token", "{source} led to no credentials: {text}"),
    ("", "{endpoint} cannot be asked: {text}"),
)
"""Why there is no answer, by a word in the error."""

_GRANTS: Final = {
    "key": "see whether the key is still the account's",
    "sas": "make a SAS token for the container that allows reading and listing (sp=rl)",
}
_ROLE: Final = "give the identity the role Storage Blob Data Reader on the account or the container"


@frozen(slots=False)
class AzureFault(Exception):
    """What Azure has answered, or why it could not be asked. `text` holds no secret."""

    text: str
    code: str = ""
    """Azure's own word for it, such as ContainerNotFound."""
    status: int = 0
    passing: bool = False
    """There was no answer, or not a whole one, but there may be at the next try."""

    def __str__(self) -> str:
        return self.text


def transient(error: Exception) -> bool:
    """Whether the same request may well work when it is sent again."""
    return isinstance(error, AzureFault) and (error.passing or error.status in TRANSIENT_STATUS)


def explain(fault: AzureFault, access: Access, container: str) -> str:
    """What a fault means and the next step."""
    return _template(fault, access).format(
        where=f"container '{container}'" + (f" of account '{access.account}'" if access.account else ""),
        account=access.account,
        source=access.source,
        grant=_GRANTS.get(access.kind, _ROLE),
        endpoint=access.endpoint,
        host=access.endpoint.partition("://")[2].partition("/")[0],
        text=fault.text.partition("\n")[0] if fault.status else " ".join(fault.text.split())[:600],
        answer=" ".join(filter(None, (str(fault.status), fault.code))),
    )


def _template(fault: AzureFault, access: Access) -> str:
    if not fault.status:
        host = access.endpoint.partition("://")[2].partition("/")[0].partition(":")[0]
        return _matching(_UNREACHABLE, fault.text.replace(host, ""))
    if not fault.code and not transient(fault):
        return _FOREIGN
    if access.kind == "anonymous" and fault.status in (401, 403, 404, 409) and fault.code != "BlobNotFound":
        return _ANONYMOUS
    rejected = fault.code in ("AuthenticationFailed", "InvalidAuthenticationInfo") or "signature" in fault.text.lower()
    if fault.status in (400, 401, 403) and rejected:
        return _matching(_REJECTED, fault.text)
    usual = _REFUSED + "{grant} ({answer})" if fault.status in (401, 403) else "Azure answers {answer}: {text}"
    return _CODES.get(fault.code, usual)


def _matching(table: tuple[tuple[str, str], ...], text: str) -> str:
    return next(told for words, told in table if re.search(words, text, re.IGNORECASE))
