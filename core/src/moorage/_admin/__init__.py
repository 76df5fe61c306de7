"""AdminService: everything about models that is not an inference. All protocols call it; it knows none of them."""

from moorage._admin.readiness import Readiness, ReadinessPolicy
from moorage._admin.service import AdminService, AdminSettings
from moorage._admin.values import (
    BatchStatistics,
    Duration,
    IndexEntry,
    ModelMetadata,
    ModelStatistics,
    Reloaded,
    ServerMetadata,
    TensorMetadata,
)

__all__ = [
    "AdminService",
    "AdminSettings",
    "BatchStatistics",
    "Duration",
    "IndexEntry",
    "ModelMetadata",
    "ModelStatistics",
    "Readiness",
    "ReadinessPolicy",
    "Reloaded",
    "ServerMetadata",
    "TensorMetadata",
]
