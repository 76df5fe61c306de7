"""Which schemes fsspec knows, and which of them are places for models."""

from __future__ import annotations

from typing import Any, Final

from fsspec.registry import get_filesystem_class

from moorage.errors import NotFound, told

OFTEN: Final = ("ftp", "github", "hf", "http", "https", "memory", "sftp", "tar", "webdav", "zip")
"""Those that are worth a mention."""
_UNFIT: Final = {
    **dict.fromkeys(
        ("blockcache", "cached", "filecache", "simplecache"),
        "it caches another store; leave it out: models are copied anyway, and --model-cache-dir keeps the copies",
    ),
    **dict.fromkeys(
        ("async_wrapper", "asynclocal", "asyncwrapper", "data", "dir", "generic", "pyscript", "reference"),
        "it is a part that fsspec builds others of, not a place for models",
    ),
}


class NotInstalled(NotFound):
    """fsspec knows the scheme, but the package is missing that it needs; the message is fsspec's, and names it."""


def implementation(scheme: str) -> Any:
    """The class of fsspec's for a scheme. Raises NotFound that says why there is none, NotInstalled if one could be had."""
    if scheme in _UNFIT:
        raise NotFound(f"'{scheme}' of fsspec cannot hold model repositories: {_UNFIT[scheme]}")
    try:
        return get_filesystem_class(scheme)
    except ImportError as error:
        raise NotInstalled(told(error)) from error
    except ValueError:
        raise NotFound(f"fsspec knows {', '.join(OFTEN)} and others, but not '{scheme}'") from None
