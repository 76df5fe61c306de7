"""What a backend offers: it loads a version's files, and runs requests on instances of what it loaded."""

from moorage.backend.contract import (
    Backend,
    BatchInstance,
    Instance,
    LoadContext,
    LoadedModel,
    ModelMatch,
    Placement,
    Signature,
    TensorSpec,
    VersionFiles,
)
from moorage.backend.settings import Settings, threads_for_each

__all__ = [
    "Backend",
    "BatchInstance",
    "Instance",
    "LoadContext",
    "LoadedModel",
    "ModelMatch",
    "Placement",
    "Settings",
    "Signature",
    "TensorSpec",
    "VersionFiles",
    "threads_for_each",
]
