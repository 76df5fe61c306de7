"""Who asks Google Cloud Storage: a key file, an identity of the machine, or nobody. Never nobody unless that was asked for."""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from google.auth.exceptions import GoogleAuthError

from moorage.errors import StorageError
from moorage.storage import credentials
from moorage_gcs.identities import KINDS, of_machine

KEY_FILE: Final = "GOOGLE_APPLICATION_CREDENTIALS"
ANONYMOUS: Final = "MOORAGE_GCS_ANONYMOUS"
EMULATOR: Final = "STORAGE_EMULATOR_HOST"
_PROBE_SECONDS: Final = 1.0
_PRODUCT: Final = Path("/sys/class/dmi/id/product_name")

Token = Any
"""Credentials of google-auth, or the "anon" of gcsfs."""


def choose(url: str) -> Token:
    """The credentials for a URL, by where they are first found:

    1. the file that TRITON_CLOUD_CREDENTIAL_PATH names: "gs", the longest name that fits, the path of a key file
    2. MOORAGE_GCS_ANONYMOUS, or an emulator in STORAGE_EMULATOR_HOST: none
    3. the key file that GOOGLE_APPLICATION_CREDENTIALS names
    4. what `gcloud auth application-default login` has left
    5. the metadata server, on Google's machines

    Raises StorageError if there are none, or if what is named cannot be read.
    """
    stored = credentials.stored("gs", url)
    if stored not in (None, ""):
        return _stored(stored)
    if asked_for(ANONYMOUS) or emulator():
        return "anon"
    if named := os.environ.get(KEY_FILE):
        return from_file(Path(named), KEY_FILE)
    login = _gcloud_file()
    if _there(login):
        return from_file(login, "gcloud auth application-default login")
    if on_google():
        return of_machine()
    raise StorageError(
        f"there are no credentials for Google Cloud Storage: {KEY_FILE} is not set, {login} does not exist and no metadata "
        f"server answers. Set {KEY_FILE} to a key file, or {ANONYMOUS}=true for buckets that are open to everybody"
    )


def emulator() -> str:
    """The URL of the emulator, if one is in use."""
    host = os.environ.get(EMULATOR, "")
    if host in ("", "default"):
        return ""
    return (host if "://" in host else f"http://{host}").rstrip("/")


def asked_for(variable: str) -> bool:
    """Whether a variable is switched on. Raises StorageError for a value that is neither yes nor no."""
    value = os.environ.get(variable, "").strip().lower()
    if value in ("", "0", "false", "no", "off"):
        return False
    if value in ("1", "true", "yes", "on"):
        return True
    raise StorageError(f"{variable} must be true or false, not '{value}'")


def on_google() -> bool:
    """Whether there is a metadata server. Elsewhere this takes a second at most, for nobody may answer at its address."""
    if os.environ.get("NO_GCE_CHECK", "").lower() == "true":
        return False
    if os.environ.get("GCE_METADATA_HOST") or _product().startswith("Google"):
        return True
    address = os.environ.get("GCE_METADATA_IP", "169.254.169.254")
    request = urllib.request.Request(f"http://{address}/", headers={"Metadata-Flavor": "Google"})
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=_PROBE_SECONDS) as answer:
            return bool(answer.headers.get("Metadata-Flavor") == "Google")
    except (OSError, urllib.error.URLError, ValueError):
        return False


def from_file(path: Path, source: str) -> Token:
    """The credentials in a file of Google's; `source` says who has named it. Raises StorageError without any of its content."""
    where = f"the file {path} ({source})"
    info = _content(path, where)
    kind = info.get("type")
    make = KINDS.get(kind) if isinstance(kind, str) else None
    if make is None:
        raise StorageError(f'{where} is of no known kind: its "type" should be one of {", ".join(KINDS)}')
    try:
        return make(info)
    except (GoogleAuthError, ValueError, KeyError, TypeError, AttributeError) as error:
        lacking = f": it lacks {error}" if isinstance(error, KeyError) else ""
        # What google-auth says may repeat parts of a key.
        raise StorageError(f"{where} holds no usable {kind} credentials{lacking}; create it anew") from None


def _stored(value: Any) -> Token:
    if not isinstance(value, str):
        raise StorageError(f'{credentials.VARIABLE}: the values under "gs" should be paths of key files')
    return from_file(Path(value), credentials.VARIABLE)


def _content(path: Path, where: str) -> Mapping[str, Any]:
    try:
        content = json.loads(path.read_bytes())
    except OSError as error:
        raise StorageError(f"{where} cannot be read: {error.strerror}; correct the path, or what this user may read") from error
    except ValueError:
        raise StorageError(f"{where} is not JSON; it should be a key file of Google's") from None
    if not isinstance(content, dict):
        raise StorageError(f"{where} is JSON, but no key file of Google's")
    return content


def _gcloud_file() -> Path:
    folder = os.environ.get("CLOUDSDK_CONFIG")
    name = "application_default_credentials.json"
    try:
        return (Path(folder) if folder else Path.home() / ".config" / "gcloud") / name
    except RuntimeError:  # a user without a home
        return Path("/nowhere") / name


def _there(file: Path) -> bool:
    try:
        return file.exists()
    except OSError:  # in a home that is somebody else's
        return False


def _product() -> str:
    try:
        return _PRODUCT.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
