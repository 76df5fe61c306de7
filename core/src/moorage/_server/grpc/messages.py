"""What the admin service says, as messages of the inference service."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from moorage._admin import BatchStatistics, Duration, IndexEntry, ModelMetadata, ModelStatistics, ServerMetadata, TensorMetadata
from moorage.config.proto import message_class


def make(kind: str, /, **fields: Any) -> Any:
    """A message of package `inference`."""
    return message_class(kind)(**fields)


def server_metadata(metadata: ServerMetadata) -> Any:
    return make("ServerMetadataResponse", name=metadata.name, version=metadata.version, extensions=metadata.extensions)


def model_metadata(metadata: ModelMetadata) -> Any:
    return make(
        "ModelMetadataResponse",
        name=metadata.name,
        versions=metadata.versions,
        platform=metadata.platform,
        inputs=[_tensor(tensor) for tensor in metadata.inputs],
        outputs=[_tensor(tensor) for tensor in metadata.outputs],
    )


def _tensor(tensor: TensorMetadata) -> dict[str, Any]:
    return {"name": tensor.name, "datatype": tensor.datatype, "shape": tensor.shape}


def index(entries: Iterable[IndexEntry]) -> Any:
    response = make("RepositoryIndexResponse")
    for entry in entries:
        response.models.add(name=entry.name, version=entry.version, state=entry.state, reason=entry.reason)
    return response


def statistics(models: Iterable[ModelStatistics]) -> Any:
    response = make("ModelStatisticsResponse")
    for model in models:
        _write_statistics(response.model_stats.add(), model)
    return response


def _write_statistics(message: Any, model: ModelStatistics) -> None:
    message.name = model.name
    message.version = model.version
    message.last_inference = model.last_inference
    message.inference_count = model.inference_count
    message.execution_count = model.execution_count
    durations = ("success", "fail", "queue", "compute_input", "compute_infer", "compute_output", "cache_hit", "cache_miss")
    for name in durations:
        _write_duration(getattr(message.inference_stats, name), getattr(model, name))
    for batch in model.batch_stats:
        _write_batch(message.batch_stats.add(), batch)


def _write_batch(message: Any, batch: BatchStatistics) -> None:
    message.batch_size = batch.batch_size
    for name in ("compute_input", "compute_infer", "compute_output"):
        _write_duration(getattr(message, name), getattr(batch, name))


def _write_duration(message: Any, duration: Duration) -> None:
    """Setting the fields also makes the duration be there when nothing was counted."""
    message.count = duration.count
    message.ns = duration.ns


def log_settings(settings: Mapping[str, bool | int | str]) -> Any:
    response = make("LogSettingsResponse")
    for name, value in settings.items():
        if isinstance(value, bool):
            response.settings[name].bool_param = value
        elif isinstance(value, int):
            response.settings[name].uint32_param = value
        else:
            response.settings[name].string_param = value
    return response
