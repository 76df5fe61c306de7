"""Model repositories: what lies in them, and what is to be loaded of it."""

from moorage._repository.names import check_name
from moorage._repository.repositories import Repositories
from moorage._repository.scan import ModelFolder, RepositorySnapshot
from moorage._repository.spec import ModelSpec, VersionSpec

__all__ = ["ModelFolder", "ModelSpec", "Repositories", "RepositorySnapshot", "VersionSpec", "check_name"]
