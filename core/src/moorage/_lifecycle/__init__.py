"""The life of a model: which of its versions are loaded, which serve, and how one set of versions takes over from another."""

from moorage._lifecycle.manager import Manager
from moorage._lifecycle.pool import Servable
from moorage._lifecycle.serving import Handle, ServingMap
from moorage._lifecycle.status import VersionStatus

__all__ = ["Handle", "Manager", "Servable", "ServingMap", "VersionStatus"]
