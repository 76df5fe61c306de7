"""Metadata and statistics of a servable, as values."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from moorage._admin.values import BatchStatistics, Duration, ModelMetadata, ModelStatistics, TensorMetadata
from moorage._execution import DURATION_BOUNDS_NS, Servable, Tally
from moorage.config.schema import ModelConfig, ModelInput, ModelOutput


def metadata(config: ModelConfig, versions: Sequence[int]) -> ModelMetadata:
    """A model's metadata; the batch dimension is shown as -1."""
    return ModelMetadata(
        name=config.name,
        versions=tuple(str(version) for version in versions),
        platform=config.platform or config.backend,
        inputs=tuple(_tensor(item, config.batches) for item in config.input),
        outputs=tuple(_tensor(item, config.batches) for item in config.output),
    )


def statistics(servable: Servable, namespace: str = "") -> ModelStatistics:
    """The counts of a version since it was loaded."""
    counts = servable.statistics()
    return ModelStatistics(
        name=servable.name,
        version=str(servable.version),
        last_inference=counts.last_inference_ms,
        inference_count=counts.inference_count,
        execution_count=counts.execution_count,
        success=_duration(counts.success),
        fail=_duration(counts.fail),
        queue=_duration(counts.queue),
        compute_input=_duration(counts.compute_input),
        compute_infer=_duration(counts.compute_infer),
        compute_output=_duration(counts.compute_output),
        cache_hit=Duration(),
        cache_miss=Duration(),
        batch_stats=tuple(
            BatchStatistics(
                rows, _duration(batch.compute_input), _duration(batch.compute_infer), _duration(batch.compute_output)
            )
            for rows, batch in sorted(counts.batches.items())
        ),
        pending=servable.pending,
        rejected=counts.rejected,
        cancelled=counts.cancelled,
        namespace=namespace,
        durations=dict(zip(DURATION_BOUNDS_NS, accumulate(counts.durations), strict=False)),
    )


def _tensor(item: ModelInput | ModelOutput, batches: bool) -> TensorMetadata:
    batch = (-1,) if batches and not item.is_shape_tensor else ()
    return TensorMetadata(item.name, item.data_type.wire, batch + item.dims)


def _duration(tally: Tally) -> Duration:
    return Duration(tally.count, tally.ns)
