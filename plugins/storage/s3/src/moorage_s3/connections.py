"""What it means that no answer has come, and the next step."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Final

from botocore import exceptions as aws
from botocore.parsers import ResponseParserError

from moorage_s3.urls import S3Url

_NO_HOST: Final = ("NameResolutionError", "Name or service not known", "getaddrinfo failed", "nodename nor servname")


def connection_told(error: Exception, url: S3Url) -> str:
    """What an error of the connection means; empty for one that is not such an error."""
    server = url.endpoint or str(getattr(error, "kwargs", {}).get("endpoint_url", "")).partition("?")[0] or "the store"
    return next((tell(error, server) for kind, tell in _KINDS if isinstance(error, kind)), "")


def _untrusted(error: Exception, server: str) -> str:
    text = str(error)
    if "CERTIFICATE_VERIFY_FAILED" not in text:
        return f"{server} does not speak TLS as expected: if it speaks plain HTTP, write http:// before the host ({text})"
    return (
        f"the certificate of {server} is not trusted ({_reason(text)}): set AWS_CA_BUNDLE to a file with its authority's "
        "certificate, or MOORAGE_S3_TLS_VERIFY=false to go without"
    )


def _reason(text: str) -> str:
    return text.partition("certificate verify failed: ")[2].partition(" (_ssl")[0] or "verification failed"


def _unreachable(error: Exception, server: str) -> str:
    if _caused_by_name(error):
        return f"there is no host of that name: {server}; correct the URL or AWS_ENDPOINT_URL, or see whether DNS works"
    return f"{server} cannot be reached: see whether it runs, and check host and port"


def _caused_by_name(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, socket.gaierror) or any(sign in f"{type(error).__name__} {error}" for sign in _NO_HOST):
            return True
        error = getattr(error, "kwargs", {}).get("error") or error.__cause__ or error.__context__
    return False


def _no_proxy(_: Exception, __: str) -> str:
    return "the HTTP proxy that HTTPS_PROXY or HTTP_PROXY names cannot be reached: correct it, or except the store in NO_PROXY"


def _late(_: Exception, server: str) -> str:
    return f"{server} does not answer (MOORAGE_S3_CONNECT_TIMEOUT): check host, port and firewalls"


def _silent(_: Exception, server: str) -> str:
    return f"{server} has been silent for too long (MOORAGE_S3_READ_TIMEOUT), each time that it was asked"


def _closed(_: Exception, server: str) -> str:
    return f"{server} has closed the connection without an answer: if it speaks TLS, write https:// before the host"


def _gibberish(_: Exception, server: str) -> str:
    return f"{server} does not answer as an S3 server does: check host and port"


def _impossible(error: Exception, _: str) -> str:
    return f"the store cannot be asked: {error}"


_KINDS: Final[tuple[tuple[type[Exception] | tuple[type[Exception], ...], Callable[[Exception, str], str]], ...]] = (
    (aws.SSLError, _untrusted),
    (aws.ProxyConnectionError, _no_proxy),
    (aws.ConnectTimeoutError, _late),
    (aws.ReadTimeoutError, _silent),
    (aws.EndpointConnectionError, _unreachable),
    ((aws.ConnectionClosedError, aws.HTTPClientError), _closed),
    (ResponseParserError, _gibberish),
    ((aws.ParamValidationError, aws.UnknownEndpointError, aws.EndpointProviderError, ValueError), _impossible),
)
