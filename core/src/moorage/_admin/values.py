"""What AdminService answers with: values free of any protocol."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen


@frozen
class ServerMetadata:
    name: str
    version: str
    extensions: tuple[str, ...]


@frozen
class TensorMetadata:
    """`shape` includes the batch dimension as -1."""

    name: str
    datatype: str
    shape: tuple[int, ...]


@frozen
class ModelMetadata:
    name: str
    versions: tuple[str, ...]
    platform: str
    inputs: tuple[TensorMetadata, ...]
    outputs: tuple[TensorMetadata, ...]


@frozen
class IndexEntry:
    """A line of the repository index. Never loaded: everything but the name is empty."""

    name: str
    version: str = ""
    state: str = ""
    reason: str = ""


@frozen
class Reloaded:
    """What became of a model when everything was loaded again.

    `state` is "reloaded", "unchanged" or "error"; `reason` then says why, and what served before serves on.
    """

    name: str
    state: str
    reason: str = ""


@frozen
class Duration:
    """How often, and how long altogether in nanoseconds."""

    count: int = 0
    ns: int = 0


@frozen
class BatchStatistics:
    batch_size: int
    compute_input: Duration
    compute_infer: Duration
    compute_output: Duration


@frozen
class ModelStatistics:
    """Counts of one version since it was loaded. `last_inference` is in milliseconds since the epoch, 0 for never."""

    name: str
    version: str
    last_inference: int
    inference_count: int
    execution_count: int
    success: Duration
    fail: Duration
    queue: Duration
    compute_input: Duration
    compute_infer: Duration
    compute_output: Duration
    cache_hit: Duration
    cache_miss: Duration
    batch_stats: tuple[BatchStatistics, ...]
    pending: int = 0
    """Requests that wait for an instance now."""
    rejected: int = 0
    """Of the failures, those of requests that a queue did not take or keep."""
    cancelled: int = 0
    """Of the failures, those of requests whose client went away before they were run."""
    namespace: str = ""
    """The repository, where models are told apart by it."""
    durations: Mapping[int, int] = field(factory=dict)
    """Upper bound in nanoseconds to the number of successful requests that took no longer. Slower ones are in none."""
