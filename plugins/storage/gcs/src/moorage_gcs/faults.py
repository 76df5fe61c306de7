"""What errors of gcsfs, google-auth and the network mean, and what to do about them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

import aiohttp
import requests
from gcsfs.retry import HttpError
from google.auth.exceptions import GoogleAuthError, RefreshError, TransportError

from moorage_gcs.client import PAYER
from moorage_gcs.credentials import ANONYMOUS, KEY_FILE
from moorage_gcs.urls import Address

_READER: Final = "grant it the role Storage Object Viewer (roles/storage.objectViewer) on the bucket"
_GARBLED: Final = (json.JSONDecodeError, UnicodeDecodeError)
"""An answer that is something else, or has come in part."""
_LONG: Final = 400
"""Characters of a message of Google's that are shown."""


def explain(error: Exception, address: Address) -> str:
    """What has happened and the next step; empty for what is not known here."""
    if isinstance(error, FileNotFoundError):
        return _missing(str(error), address)
    refusal = _refusal(error)
    if refusal is not None:
        return _refused_token(refusal)
    if isinstance(error, _GARBLED):
        return "what answers is no JSON, unlike Google Cloud Storage: look at STORAGE_EMULATOR_HOST, and at proxies in between"
    return _answer(error, address) or _network(error)


def transient(error: Exception) -> bool:
    """Whether the same request may work a little later."""
    refusal = _refusal(error)
    if refusal is not None:
        return bool(refusal.retryable)
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return False
    if _code(error) in (408, 429) or _code(error) >= 500:
        return True
    if isinstance(error, _GARBLED):
        return True
    network = (aiohttp.ClientError, requests.exceptions.RequestException, TransportError, ConnectionError, TimeoutError)
    return isinstance(error, network)


def outdated(error: Exception) -> bool:
    """Whether it may help to read the credentials anew."""
    return _code(error) == 401 or isinstance(error, GoogleAuthError) or str(error).startswith("Forbidden: ")


def _missing(text: str, address: Address) -> str:
    if text == f"b/{address.bucket}/o":
        return f"there is no bucket '{address.bucket}': create it or correct the URL"
    if "generation=" in text:
        return "it has been replaced or deleted since it was listed; the load can be tried again"
    return ""


def _answer(error: Exception, address: Address) -> str:
    """Of the store, or of a proxy before it."""
    if isinstance(error, OSError) and str(error).startswith("Forbidden"):
        return f"access is forbidden: {_message(error) or address.bucket}. If the identity is the right one, {_READER}"
    if _code(error) == 401:
        return _unauthorized(error)
    if "requester pays" in str(error):
        return f"the bucket's readers pay for requests: name the project that pays in {PAYER}"
    if isinstance(error, requests.exceptions.ProxyError) or _code(error) >= 500:
        return f"Google Cloud Storage, or a proxy before it, is at fault (status {_code(error) or 502}): it can be tried again"
    return ""


def _unauthorized(error: Exception) -> str:
    if "nonymous" in str(error):
        return (
            f"nobody in particular may not read it ({_told(error)}): the bucket is not open to everybody; set {KEY_FILE} to a "
            f"key file, and {ANONYMOUS} to false"
        )
    return f"the credentials are not accepted ({_told(error)}): they may have expired or been revoked; create them anew"


def _refused_token(error: RefreshError) -> str:
    text = _told(error)
    if "reasonable timeframe" in text or "clock" in text:
        return f"no access token is given, for the clock of this machine is wrong: set it ({text})"
    if "invalid_grant" in text or "deleted" in text:
        return f"no access token is given: the key or the login has expired or been revoked; create it anew ({text})"
    return f"no access token is given: {text}"


def _network(error: Exception) -> str:
    if isinstance(error, TransportError):
        return f"no access token can be had, for Google's token service cannot be reached: {_told(error)}"
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return f"there is no host '{error.host}': look at the network's name service, or at STORAGE_EMULATOR_HOST if it is set"
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return f"the certificate of {error.host} cannot be verified: is there a proxy with one of its own? ({_told(error)})"
    if isinstance(error, aiohttp.ClientConnectorError):
        return f"{error.host}:{error.port} cannot be reached: look at the network, or at STORAGE_EMULATOR_HOST if it is set"
    if isinstance(error, TimeoutError):
        return "no answer has come in time: look at the network; it can be tried again"
    return ""


def _refusal(error: Exception) -> RefreshError | None:
    """The refusal of a token that is behind an error."""
    return next((one for one in _chain(error) if isinstance(one, RefreshError)), None)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__


def _code(error: Exception) -> int:
    code = error.code if isinstance(error, HttpError) else 0
    return int(code) if str(code).isdigit() else 0


def _message(error: Exception) -> str:
    """What Google says, in an error of gcsfs that begins with a line of its own."""
    return str(error).partition("\n")[2].strip()[:_LONG].rstrip(".")


def _told(error: BaseException) -> str:
    """The message itself, without what else google-auth hands on, such as the answer of a token service."""
    text = str(error.args[0]) if error.args else ""
    return text.strip()[:_LONG] or type(error).__name__
