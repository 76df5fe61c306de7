"""Who asks: the entry of a credential file, else what the environment, AWS's configuration files or the machine's role say."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from attrs import field, fields, frozen

from moorage.errors import StorageError
from moorage.storage import credentials
from moorage_s3.urls import S3Url

_NAMED_FILES: Final = ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE", "AWS_WEB_IDENTITY_TOKEN_FILE")
_SECRETS: Final = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")


@frozen
class Access:
    """What a credential file gives for a repository; all of it may be empty."""

    key_id: str = ""
    secret_key: str = field(default="", repr=False)
    session_token: str = field(default="", repr=False)
    region: str = ""
    profile: str = ""


def given(url: S3Url) -> Access:
    """The entry of the credential file for a repository; empty without a file or a fitting entry.

    Raises StorageError, without showing values, for an entry that is not as it should be.
    """
    entry = credentials.stored("s3", *url.names)
    return Access() if entry is None else _access(entry)


def check_certificates(environment: Mapping[str, str] = os.environ) -> None:
    """Raises StorageError that names the variable if there is no file with the certificates that are to be trusted."""
    _check_file("AWS_CA_BUNDLE", environment)


def check(environment: Mapping[str, str] = os.environ) -> None:
    """Raises StorageError that names the variable whose file cannot be read, or whose value has white space around it.

    What such a file would have told is not there; going on without it would end in an error that names something else.
    """
    for name in _SECRETS:
        value = environment.get(name, "")
        if value != value.strip():
            raise StorageError(f"{name} begins or ends with white space (a line break, say): take it away")
    for name in () if environment.get("AWS_ACCESS_KEY_ID") else _NAMED_FILES:
        _check_file(name, environment)


def region(environment: Mapping[str, str] = os.environ) -> str:
    """The region that the environment names; empty if none."""
    return environment.get("AWS_DEFAULT_REGION") or environment.get("AWS_REGION") or ""


def _check_file(name: str, environment: Mapping[str, str]) -> None:
    if not environment.get(name):
        return
    path = Path(environment[name]).expanduser()
    try:
        with path.open("rb"):
            return
    except OSError as error:
        raise StorageError(f"{name} names {path}, which cannot be read: {error.strerror}") from error


def _access(entry: Any) -> Access:
    where = f"the entry of the file that {credentials.VARIABLE} names"
    known = [one.name for one in fields(Access)]
    if not isinstance(entry, Mapping) or not all(isinstance(value, str | None) for value in entry.values()):
        raise StorageError(f"{where} for an S3 repository must map {', '.join(known)} to texts")
    unknown = sorted(set(entry) - set(known))
    if unknown:
        raise StorageError(f"{where} for an S3 repository has the unknown key '{unknown[0]}'; known are {', '.join(known)}")
    access = Access(**{name: (value or "").strip() for name, value in entry.items()})
    if bool(access.key_id) != bool(access.secret_key):
        raise StorageError(f"{where} for an S3 repository needs both key_id and secret_key, or neither")
    return access
