"""Running requests: request checks, placement of instances, schedulers, and loading a version into a servable."""

from moorage._execution.loading import DEFAULT_MAX_BATCH_SIZE, Loader, LoadSettings
from moorage._execution.servable import Servable
from moorage._execution.statistics import DURATION_BOUNDS_NS, Recorder, Tally

__all__ = ["DEFAULT_MAX_BATCH_SIZE", "DURATION_BOUNDS_NS", "LoadSettings", "Loader", "Recorder", "Servable", "Tally"]
