"""Policies of a model: versions, transactions, caching, metrics, agents."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from moorage.config.schema.attributes import mapping, oneof


@frozen
class Latest:
    num_versions: int = 0


@frozen
class All:
    pass


@frozen
class Specific:
    versions: tuple[int, ...] = ()


@frozen
class VersionPolicy:
    """Which of the versions in the repository are served; `choice` None means all of them."""

    choice: Latest | All | Specific | None = oneof(latest=Latest, all=All, specific=Specific)


@frozen
class TransactionPolicy:
    decoupled: bool = False


@frozen
class ResponseCache:
    enable: bool = False


@frozen
class MetricIdentifier:
    family: str = ""


@frozen
class HistogramOptions:
    buckets: tuple[float, ...] = ()


@frozen
class MetricControl:
    metric_identifier: MetricIdentifier | None = None
    metric_options: HistogramOptions | None = oneof(histogram_options=HistogramOptions)


@frozen
class ModelMetrics:
    metric_control: tuple[MetricControl, ...] = ()


@frozen
class Agent:
    name: str = ""
    parameters: Mapping[str, str] = mapping()


@frozen
class RepositoryAgents:
    agents: tuple[Agent, ...] = ()


@frozen
class ModelOperations:
    op_library_filename: tuple[str, ...] = ()


@frozen
class Parameter:
    string_value: str = ""
