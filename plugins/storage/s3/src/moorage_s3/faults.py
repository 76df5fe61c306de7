"""What the errors of botocore mean, and the next step: here they become sentences, and nothing of a secret goes in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from botocore import exceptions as aws

from moorage.storage.transfer import Incomplete
from moorage_s3.answers import answer_told
from moorage_s3.connections import connection_told
from moorage_s3.urls import S3Url


def explain(error: Exception, url: S3Url, *, region: str = "") -> str:
    """What went wrong for a repository, and what to do; empty for an error that is not S3's."""
    if isinstance(error, aws.ClientError):
        return answer_told(error, url, region) if error.operation_name in _OF_STORES else _no_role(error)
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}"  # a file on this machine: a token that is gone, a folder that is full
    if isinstance(error, Incomplete):
        return f"{error}, each time that it was asked: see whether the store and the network are well"
    return next((tell(error) for kind, tell in _CREDENTIALS if isinstance(error, kind)), "") or connection_told(error, url)


_OF_STORES: Final = ("ListObjectsV2", "GetObject")


def outdated(error: Exception) -> bool:
    """Whether other credentials may be found now than when the client was made."""
    return isinstance(error, aws.ClientError) and error.response.get("Error", {}).get("Code") in _OUTDATED


_OUTDATED: Final = (
    "AccessDenied",
    "ExpiredToken",
    "ExpiredTokenException",
    "InvalidAccessKeyId",
    "InvalidToken",
    "SignatureDoesNotMatch",
    "TokenRefreshRequired",
)


def _no_role(error: aws.ClientError) -> str:
    told = error.response.get("Error", {})
    return (
        f"the role could not be taken ({error.operation_name} answers {told.get('Code', '')}: {told.get('Message', '')}): "
        "check AWS_ROLE_ARN or the profile, and whom the role trusts"
    )


def _no_credentials(_: Exception) -> str:
    return (
        "no credentials were found: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or AWS_PROFILE, give this machine a role, "
        "or set MOORAGE_S3_ANONYMOUS=true for a public bucket"
    )


def _no_profile(error: Exception) -> str:
    return f"{error}: set AWS_PROFILE (or profile in the credential file) to one in AWS's configuration files"


def _half_credentials(error: Exception) -> str:
    return f"{error}: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY go together"


def _failed_provider(error: Exception) -> str:
    provider = getattr(error, "kwargs", {}).get("provider", "")
    return f"the credentials could not be had{f' from {provider}' if provider else ''}: {error}"


def _used_up_login(error: Exception) -> str:
    return f"{error}: log in again with `aws sso login`"


def _bad_file(error: Exception) -> str:
    return f"AWS's configuration is not right: {error}"


_CREDENTIALS: Final[tuple[tuple[type[Exception], Callable[[Any], str]], ...]] = (
    (aws.NoCredentialsError, _no_credentials),
    (aws.PartialCredentialsError, _half_credentials),
    (aws.ProfileNotFound, _no_profile),
    (aws.CredentialRetrievalError, _failed_provider),
    (aws.SSOError, _used_up_login),
    (aws.ConfigParseError, _bad_file),
    (aws.ConfigNotFound, _bad_file),
    (aws.InvalidConfigError, _bad_file),
    (aws.MetadataRetrievalError, _failed_provider),
    (aws.RefreshWithMFAUnsupportedError, _bad_file),
)
