"""Which storage reads a repository: a plugin's, or the one for all that fsspec knows."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Final

from moorage._plugins import Registry
from moorage._plugins.advice import provider
from moorage.errors import NotFound
from moorage.storage import Storage

_ADVICE: Final = "A plugin can add a scheme: see docs/how-to/write-a-storage.md"


def open_storage(scheme: str, registry: Registry) -> Storage:
    """A storage for a scheme: of the plugin that claims it, else through fsspec.

    Raises NotFound that says what to install, or which schemes there are.
    """
    try:
        found = registry.storage(scheme)
    except NotFound as error:
        if ("storage", scheme) in registry.refused or provider("storage", scheme) is not None:
            raise
        return _through_fsspec(scheme, registry, str(error))
    return found()


def _through_fsspec(scheme: str, registry: Registry, lacking: str) -> Storage:
    from moorage._storage import schemes  # noqa: PLC0415 (loads fsspec, which only these need)

    try:
        return schemes.storage(scheme, lambda other: open_storage(other, registry))
    except schemes.NotInstalled as error:
        raise NotFound(f"{lacking}; fsspec can serve it once its package is installed ({error}). {_ADVICE}") from error
    except NotFound as error:
        close = get_close_matches(scheme, schemes.OFTEN, n=1)
        hint = f" (did you mean '{close[0]}'?)" if close else ""
        raise NotFound(f"{lacking}{hint}; {error}. {_ADVICE}") from error
