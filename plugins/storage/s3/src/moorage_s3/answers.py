"""What the errors mean that S3 answers with, and the next step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from attrs import frozen
from botocore.exceptions import ClientError

from moorage_s3.urls import S3Url

_READING: Final = "GetObject"


@frozen
class _Refused:
    """An answer with an error: what it says, of which request, for which repository."""

    url: S3Url
    region: str
    reading: bool
    """Whether an object was read, not the bucket listed."""
    status: int
    code: str
    message: str
    details: Mapping[str, Any]
    headers: Mapping[str, str]

    @property
    def place(self) -> str:
        return f"bucket '{self.url.bucket}'" + (f" at {self.url.endpoint}" if self.url.endpoint else "")


def answer_told(error: ClientError, url: S3Url, region: str) -> str:
    """The meaning of an answer for a repository whose requests are signed for a region."""
    refused = _refused(error, url, region)
    tell = _ANSWERS.get(refused.code) or _BY_STATUS.get(refused.status, _unknown)
    return tell(refused)


def _refused(error: ClientError, url: S3Url, region: str) -> _Refused:
    details, meta = error.response.get("Error", {}), error.response.get("ResponseMetadata", {})
    return _Refused(
        url=url,
        region=region,
        reading=error.operation_name == _READING,
        status=int(meta.get("HTTPStatusCode", 0)),
        code=str(details.get("Code", "")),
        message=str(details.get("Message", "")).strip(),
        details=details,
        headers=meta.get("HTTPHeaders", {}),
    )


def _unknown(refused: _Refused) -> str:
    said = ": ".join(part for part in (refused.code, refused.message) if part and part != str(refused.status))
    return f"{refused.place} answers with HTTP {refused.status}" + (f", {said}" if said else "")


def _failing(refused: _Refused) -> str:
    if refused.headers.get("content-type", "").startswith("text/html"):
        return _not_s3(refused)
    return f"{_unknown(refused)}, also when asked again: the store is overloaded or ill; the next poll or load asks anew"


def _no_bucket(refused: _Refused) -> str:
    name = refused.url.bucket
    told = f"{refused.place} does not exist: create it or correct the URL"
    if refused.url.endpoint or not ("." in name or name.lower() in ("http", "https", "localhost")):
        return told
    server = "HOST" if name.lower() in ("http", "https") else name
    return (
        f"{told}. If '{name}' is meant to be a server: write s3://http://{server}:PORT/BUCKET/PATH or "
        f"s3://https://{server}/BUCKET/PATH, or set AWS_ENDPOINT_URL and leave the server out of the URL"
    )


def _no_object(_: _Refused) -> str:
    return "it is not there (any more): the repository may have changed since it was listed; the load can be tried again"


def _changed(_: _Refused) -> str:
    return "it has changed since it was listed; the load can be tried again"


def _wrong_region(refused: _Refused) -> str:
    right = refused.headers.get("x-amz-bucket-region") or refused.details.get("Region") or ""
    now = f" (now {refused.region})" if refused.region else ""
    if right:
        return f"{refused.place} is in region {right}: set AWS_DEFAULT_REGION={right}{now}"
    return f"{refused.place} is in another region: find out in which and set AWS_DEFAULT_REGION{now}"


def _forbidden(refused: _Refused) -> str:
    said = f" (it says: {refused.message})" if refused.message and refused.message not in ("Access Denied", "Forbidden") else ""
    bucket = refused.url.bucket
    name = bucket if bucket.startswith("arn:") else f"arn:aws:s3:::{bucket}"
    if not refused.reading:
        return f"{refused.place} may not be listed: allow s3:ListBucket on {name} for these credentials{said}"
    where = f"{name}/{refused.url.prefix}/*" if refused.url.prefix else f"{name}/*"
    return f"{refused.place} may be listed, but this object not be read: allow s3:GetObject on {where}{said}"


def _expired(_: _Refused) -> str:
    return (
        "the session token has expired: put new credentials into AWS's files (or into the environment, and start the server "
        "anew), or let a role or a credential_process give them, which are renewed in time"
    )


def _skewed(refused: _Refused) -> str:
    theirs = refused.details.get("ServerTime") or refused.headers.get("date", "")
    ours = refused.details.get("RequestTime", "")
    times = f" (the store has {theirs}{f', this machine {ours}' if ours else ''})" if theirs else ""
    return f"the clock of this machine is wrong{times}: set it, by NTP for instance"


def _bad_signature(_: _Refused) -> str:
    return (
        "the secret key does not belong to the key id: check AWS_SECRET_ACCESS_KEY (or secret_key in the credential file) for "
        "characters that are missing or too many"
    )


def _unknown_key(refused: _Refused) -> str:
    return (
        "the key id is not known: check AWS_ACCESS_KEY_ID (or key_id in the credential file), and that it belongs to "
        f"{refused.url.endpoint or 'the store that is asked'}"
    )


def _bad_token(_: _Refused) -> str:
    return "the session token is not a valid one: AWS_SESSION_TOKEN must come from the same place as the key and the secret"


def _archived(_: _Refused) -> str:
    return "it lies in an archive (Glacier): restore it, or copy it to another storage class"


def _bad_bucket(refused: _Refused) -> str:
    return f"'{refused.url.bucket}' cannot be the name of a bucket: correct the URL"


def _not_s3(refused: _Refused) -> str:
    server = refused.url.endpoint or "the endpoint"
    return (
        f"{server} does not answer as an S3 server does (HTTP {refused.status}): check host and port, and path style or "
        "virtual-host style (MOORAGE_S3_ADDRESSING_STYLE)"
    )


_ANSWERS: Final[Mapping[str, Callable[[_Refused], str]]] = {
    "NoSuchBucket": _no_bucket,
    "NoSuchKey": _no_object,
    "PreconditionFailed": _changed,
    "PermanentRedirect": _wrong_region,
    "TemporaryRedirect": _wrong_region,
    "AuthorizationHeaderMalformed": _wrong_region,
    "IllegalLocationConstraintException": _wrong_region,
    "AccessDenied": _forbidden,
    "AllAccessDisabled": _forbidden,
    "ExpiredToken": _expired,
    "ExpiredTokenException": _expired,
    "TokenRefreshRequired": _expired,
    "RequestTimeTooSkewed": _skewed,
    "SignatureDoesNotMatch": _bad_signature,
    "InvalidAccessKeyId": _unknown_key,
    "InvalidToken": _bad_token,
    "InvalidClientTokenId": _bad_token,
    "InvalidObjectState": _archived,
    "InvalidBucketName": _bad_bucket,
}

_BY_STATUS: Final[Mapping[int, Callable[[_Refused], str]]] = {
    301: _wrong_region,
    302: _wrong_region,
    307: _wrong_region,
    403: _forbidden,
    404: _not_s3,
    405: _not_s3,
    412: _changed,
    429: _failing,
    500: _failing,
    502: _failing,
    503: _failing,
    504: _failing,
}
