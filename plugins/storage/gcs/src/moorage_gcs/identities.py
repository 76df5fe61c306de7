"""The kinds of credentials that Google has, made by google-auth out of what their files say. None of them asks anybody yet."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import google.auth.aws
import google.auth.compute_engine
import google.auth.external_account_authorized_user
import google.auth.identity_pool
import google.auth.impersonated_credentials
import google.auth.pluggable
import google.oauth2.credentials
import google.oauth2.service_account

SCOPES: Final = ("https://www.googleapis.com/auth/devstorage.read_only",)
"""What an identity is asked for; a user's credentials have the scopes that were chosen at the login."""

Content = Mapping[str, Any]
Credentials = Any

_auth: Any = google.auth  # whose functions have no types
_oauth2: Any = google.oauth2


def _service_account(info: Content) -> Credentials:
    return _oauth2.service_account.Credentials.from_service_account_info(info, scopes=SCOPES)


def _user(info: Content) -> Credentials:
    return _oauth2.credentials.Credentials.from_authorized_user_info(info)


def _external_account(info: Content) -> Credentials:
    """An identity of another cloud or of a cluster: of AWS, of a program that is run, or of a file or URL with a token."""
    if str(info["subject_token_type"]).endswith(":aws4_request"):
        return _auth.aws.Credentials.from_info(info, scopes=SCOPES)
    if "executable" in info["credential_source"]:
        return _auth.pluggable.Credentials.from_info(info, scopes=SCOPES)
    return _auth.identity_pool.Credentials.from_info(info, scopes=SCOPES)


def _external_user(info: Content) -> Credentials:
    return _auth.external_account_authorized_user.Credentials.from_info(info)


def _impersonated(info: Content) -> Credentials:
    return _auth.impersonated_credentials.Credentials.from_impersonated_service_account_info(info, scopes=SCOPES)


KINDS: Final[Mapping[str, Callable[[Content], Credentials]]] = {
    "service_account": _service_account,
    "authorized_user": _user,
    "external_account": _external_account,
    "external_account_authorized_user": _external_user,
    "impersonated_service_account": _impersonated,
}
"""What makes credentials of the content of a file, by its "type". They raise what google-auth does, ValueError and KeyError."""


def of_machine() -> Credentials:
    """The identity that the metadata server gives: of a virtual machine, or of a pod with workload identity."""
    return _auth.compute_engine.Credentials(scopes=SCOPES)
