"""A client of botocore's for a repository: region, credentials, addressing, timeouts."""

from __future__ import annotations

import logging
from datetime import datetime
from functools import cache
from typing import Any, Final
from urllib.parse import urlsplit

import urllib3
from botocore import UNSIGNED
from botocore.awsrequest import AWSResponse
from botocore.config import Config
from botocore.exceptions import NoCredentialsError
from botocore.loaders import create_loader
from botocore.session import Session
from botocore.utils import parse_timestamp

from moorage_s3 import __version__, credentials
from moorage_s3.settings import Settings
from moorage_s3.urls import S3Url

_REGION: Final = "us-east-1"
"""Where nothing names one: what servers other than AWS's expect, and where AWS redirects from."""
_CONNECTIONS: Final = 64
"""Kept open at most: several models are brought at once."""


def connect(url: S3Url, settings: Settings) -> Any:
    """A client for the repository. Asks the store nothing; finding credentials may ask the machine's metadata service.

    Raises StorageError for credentials that are given but cannot be used, and what botocore raises.
    """
    _quieten()
    credentials.check_certificates()
    access = credentials.Access() if settings.anonymous else credentials.given(url)
    if not access.key_id and not settings.anonymous:
        credentials.check()
    session = Session(profile=access.profile or None)
    session.register_component("data_loader", _descriptions())
    session.get_component("response_parser_factory").set_parser_defaults(timestamp_parser=_time)
    if access.key_id:
        session.set_credentials(access.key_id, access.secret_key, access.session_token or None)
    if not settings.anonymous and session.get_credentials() is None:
        raise NoCredentialsError
    client = session.create_client(
        "s3",
        region_name=access.region or credentials.region() or session.get_config_variable("region") or _REGION,
        endpoint_url=_spelt(url.endpoint) or None,
        verify=None if settings.tls_verify else False,
        config=_config(url, settings),
    )
    client.meta.events.register("before-call.s3.HeadBucket", _unasked)
    if url.endpoint != _spelt(url.endpoint):
        client.meta.events.register("before-sign.s3", _Address(url.endpoint))
    return client


def _config(url: S3Url, settings: Settings) -> Config:
    style = settings.addressing_style
    if url.endpoint and style == "auto":
        style = "path"
    options: dict[str, Any] = {"s3": {"addressing_style": style}} if style else {}
    if settings.anonymous:
        options["signature_version"] = UNSIGNED
    return Config(
        connect_timeout=settings.connect_timeout,
        read_timeout=settings.read_timeout,
        max_pool_connections=_CONNECTIONS,
        tcp_keepalive=True,
        response_checksum_validation="when_required",  # what is read in ranges has none
        user_agent_extra=f"moorage/{__version__}",
        **options,
    )


def _spelt(endpoint: str) -> str:
    """The endpoint as botocore takes it: names in a container network may have underscores, which it refuses."""
    scheme, separator, address = endpoint.partition("://")
    return scheme + separator + address.replace("_", "-")


def _unasked(**_: Any) -> tuple[AWSResponse, dict[str, Any]]:
    """An answer in place of the request for a bucket's region by which botocore, endlessly, follows an answer without one."""
    return AWSResponse("", 404, {}, None), {"Error": {}, "ResponseMetadata": {"HTTPHeaders": {}}}


@cache
def _descriptions() -> Any:
    """What botocore knows of the services: read once for all clients."""
    return create_loader()


def _time(value: Any) -> Any:
    """A time as botocore understands it, in a fraction of the time: of a long listing that is the most."""
    try:
        found = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return parse_timestamp(value)
    return found if found.tzinfo is not None else parse_timestamp(value)


class _Address:
    """Puts the true address into each request before it is signed."""

    def __init__(self, endpoint: str) -> None:
        self._true = urlsplit(endpoint).netloc
        self._spelt = urlsplit(_spelt(endpoint)).netloc

    def __call__(self, request: Any, **_: Any) -> None:
        parts = urlsplit(request.url)
        request.url = parts._replace(netloc=parts.netloc.removesuffix(self._spelt) + self._true).geturl()


def _quieten() -> None:
    """Keep what botocore writes about each request out of the log: at level DEBUG it shows session tokens.

    What it warns of when it cannot renew credentials comes as an error, too, and there without a traceback.
    """
    for name, level in (("botocore", logging.WARNING), ("botocore.credentials", logging.ERROR), ("urllib3", logging.WARNING)):
        library = logging.getLogger(name)
        if library.level == logging.NOTSET:
            library.setLevel(level)


def trust_anything() -> None:
    """Without the check of certificates urllib3 would warn at each request; it is said once, in the log."""
    urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
    logging.getLogger(__name__).warning("MOORAGE_S3_TLS_VERIFY is false: whoever is in between can read and change models")
