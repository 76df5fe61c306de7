"""The configuration as a whole."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from moorage.config.schema.attributes import mapping, oneof
from moorage.config.schema.instances import InstanceGroup
from moorage.config.schema.optimization import OptimizationPolicy
from moorage.config.schema.policies import (
    ModelMetrics,
    ModelOperations,
    Parameter,
    RepositoryAgents,
    ResponseCache,
    TransactionPolicy,
    VersionPolicy,
)
from moorage.config.schema.scheduling import DynamicBatching, Ensembling, SequenceBatching
from moorage.config.schema.tensors import BatchInput, BatchOutput, ModelInput, ModelOutput
from moorage.config.schema.warmup import Warmup


@frozen
class ModelConfig:
    """A model's configuration, as written, or completed and normalised (see `moorage.config`).

    Source: `model_config.proto`, message `ModelConfig`.
    """

    name: str = ""
    platform: str = ""
    backend: str = ""
    runtime: str = ""
    version_policy: VersionPolicy | None = None
    max_batch_size: int = 0
    input: tuple[ModelInput, ...] = ()
    output: tuple[ModelOutput, ...] = ()
    batch_input: tuple[BatchInput, ...] = ()
    batch_output: tuple[BatchOutput, ...] = ()
    optimization: OptimizationPolicy | None = None
    scheduling: DynamicBatching | SequenceBatching | Ensembling | None = oneof(
        dynamic_batching=DynamicBatching, sequence_batching=SequenceBatching, ensemble_scheduling=Ensembling
    )
    instance_group: tuple[InstanceGroup, ...] = ()
    default_model_filename: str = ""
    cc_model_filenames: Mapping[str, str] = mapping()
    metric_tags: Mapping[str, str] = mapping()
    parameters: Mapping[str, Parameter] = mapping()
    model_warmup: tuple[Warmup, ...] = ()
    model_operations: ModelOperations | None = None
    model_transaction_policy: TransactionPolicy | None = None
    model_repository_agents: RepositoryAgents | None = None
    response_cache: ResponseCache | None = None
    model_metrics: ModelMetrics | None = None

    @property
    def decoupled(self) -> bool:
        """Whether a request may have any number of responses."""
        return self.model_transaction_policy is not None and self.model_transaction_policy.decoupled

    @property
    def batches(self) -> bool:
        """Whether tensors have a leading batch dimension that `dims` leave out."""
        return self.max_batch_size > 0

    def parameter(self, name: str, default: str = "") -> str:
        """The string value of a parameter of the configuration."""
        found = self.parameters.get(name)
        return default if found is None else found.string_value
