"""Groups of calls that clients may use only with a key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from attrs import field, frozen

from moorage._server.secret import Secret
from moorage.errors import InvalidArgument

HEADER_PREFIX: Final = "triton-grpc-protocol-"

GROUPS: Final[Mapping[str, tuple[str, ...]]] = {
    "health": ("ServerLive", "ServerReady", "ModelReady", "Check", "Watch"),
    "metadata": ("ServerMetadata", "ModelMetadata"),
    "inference": ("ModelInfer", "ModelStreamInfer"),
    "shared-memory": (
        "SystemSharedMemoryStatus",
        "SystemSharedMemoryRegister",
        "SystemSharedMemoryUnregister",
        "CudaSharedMemoryStatus",
        "CudaSharedMemoryRegister",
        "CudaSharedMemoryUnregister",
    ),
    "model-config": ("ModelConfig",),
    "model-repository": ("RepositoryIndex", "RepositoryModelLoad", "RepositoryModelUnload"),
    "statistics": ("ModelStatistics",),
    "trace": ("TraceSetting",),
    "logging": ("LogSettings",),
}
"""Group of `--grpc-restricted-protocol` -> its calls."""


@frozen
class Restriction:
    """Calls of `groups` need the metadata `triton-grpc-protocol-<key>` with this value; `@FILE` stands for what it holds."""

    groups: tuple[str, ...]
    key: str
    value: str
    secret: Secret = field(init=False, eq=False, repr=False)

    @secret.default
    def _secret(self) -> Secret:
        return Secret(self.value)

    @property
    def header(self) -> str:
        return HEADER_PREFIX + self.key.lower()


def parse_restriction(text: str) -> Restriction:
    """A restriction written as `GROUP[,GROUP…]:KEY=VALUE`. Raises InvalidArgument."""
    names, colon, rest = text.partition(":")
    key, equals, value = rest.partition("=")
    groups = tuple(name.strip() for name in names.split(","))
    if not (colon and equals and key.strip()):
        raise InvalidArgument(f"restricted protocol '{text}': write it as GROUP[,GROUP...]:KEY=VALUE")
    for group in groups:
        if group not in GROUPS:
            raise InvalidArgument(f"restricted protocol '{text}': there is no group '{group}', only {', '.join(GROUPS)}")
    try:
        return Restriction(groups, key.strip(), value.strip())
    except InvalidArgument as error:
        raise InvalidArgument(f"restricted protocol '{text}': {error}") from error


class Access:
    """Which calls need which metadata."""

    def __init__(self, restrictions: Iterable[Restriction]) -> None:
        self._needs: dict[str, Restriction] = {}
        for restriction in restrictions:
            for group in restriction.groups:
                self._needs.update(dict.fromkeys(GROUPS[group], restriction))

    def restricts(self, method: str) -> bool:
        """Whether a call needs anything."""
        return method in self._needs

    def refusal(self, method: str, metadata: Sequence[tuple[str, str | bytes]]) -> str:
        """Why a call may not go on, empty if it may."""
        needed = self._needs.get(method)
        if needed is None or any(key == needed.header and needed.secret.matches(_bytes(value)) for key, value in metadata):
            return ""
        return f"this protocol is restricted, expecting header '{needed.header}'"


def _bytes(value: str | bytes) -> bytes:
    return value if isinstance(value, bytes) else value.encode()
