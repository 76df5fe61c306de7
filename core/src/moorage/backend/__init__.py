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
from moorage.backend.libraries import OperatorLibrary, operator_libraries
from moorage.backend.settings import SWITCH_WORDS, Settings, available_cores, threads_for_each

__all__ = [
    "SWITCH_WORDS",
    "Backend",
    "BatchInstance",
    "Instance",
    "LoadContext",
    "LoadedModel",
    "ModelMatch",
    "OperatorLibrary",
    "Placement",
    "Settings",
    "Signature",
    "TensorSpec",
    "VersionFiles",
    "available_cores",
    "operator_libraries",
    "threads_for_each",
]
