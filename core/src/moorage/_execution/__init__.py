"""Running requests: request checks, placement of instances, schedulers, and loading a version into a servable."""

from moorage._execution.loading import Loader, LoadSettings
from moorage._execution.servable import Servable
from moorage._execution.statistics import DURATION_BOUNDS_NS, Recorder, Tally

__all__ = ["DURATION_BOUNDS_NS", "LoadSettings", "Loader", "Recorder", "Servable", "Tally"]
