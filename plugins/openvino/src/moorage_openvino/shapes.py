"""Gives a model the shapes that it is served with: the dims of the configuration, a batch of any or of one size."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

from moorage.config.schema import ModelConfig, ModelInput
from moorage.errors import ConfigError, Fault, ModelError
from moorage_openvino.faults import reason
from moorage_openvino.ports import own_names
from moorage_openvino.settings import OpenVinoSettings


def batch_in_layout(runtime: ModuleType, model: Any) -> bool:
    """Whether the layouts of all inputs and outputs say that their first dimension is the batch."""
    layouts = [runtime.layout_helpers.get_layout(port) for port in (*model.inputs, *model.outputs)]
    helpers = runtime.layout_helpers
    return bool(layouts) and all(helpers.has_batch(layout) and helpers.batch_idx(layout) == 0 for layout in layouts)


def prepare(runtime: ModuleType, model: Any, config: ModelConfig, settings: OpenVinoSettings, *, batch_known: bool) -> int:
    """Reshape the model in place; the fixed size of its batch, or 0 if it takes batches of any size or none.

    A model that is to batch gets a first dimension of any size, whatever its file says; where that cannot be, or the
    settings say so, exactly `max_batch_size` rows.
    """
    if settings.reshape:
        _apply(model, {index: _with_dims(runtime, model, config, index) for index in range(len(model.inputs))}, settings.model)
    _refuse_impossible(model, settings.model)
    batches = config.max_batch_size > 0 or (batch_known and not _whole_shapes_given(model, config))
    size = config.max_batch_size
    if not batches:
        return 0
    if not (settings.fixed_batch and size) and (_batch_is(model, -1) or _set_batch(runtime, model, -1)):
        return 0
    if size > 0 and not _set_batch(runtime, model, size):
        raise ModelError(
            f"model '{settings.model}': max_batch_size is {size}, but the model's first dimension cannot be changed "
            f"({_shown(model)}); write max_batch_size: 0 and the whole shapes in dims, or export the model with a dynamic batch"
        )
    return size


def _batch_is(model: Any, size: int) -> bool:
    ports = (*model.inputs, *model.outputs)
    return all(_first(port) == size for port in ports)


def _sizes(shape: Any) -> list[Any]:
    return [] if shape.rank.is_dynamic else list(shape)


def _first(port: Any) -> int | None:
    """The size of the first dimension, -1 for any, None if there is none."""
    shape = port.partial_shape
    if shape.rank.is_dynamic or not len(shape):
        return None
    return int(shape[0].get_length()) if shape[0].is_static else -1


def _set_batch(runtime: ModuleType, model: Any, size: int) -> bool:
    """Set the first dimension of all inputs; False, and the model as it was, if the outputs do not follow."""
    before = {port: port.partial_shape for port in model.inputs}
    if any(not len(shape) for shape in before.values()):
        return False
    try:
        model.reshape({port: _with_first(runtime, shape, size) for port, shape in before.items()})
        if _batch_is(model, size):
            return True
    except RuntimeError:
        pass
    model.reshape(before)
    return False


def _with_first(runtime: ModuleType, shape: Any, size: int) -> Any:
    return runtime.PartialShape([runtime.Dimension(size), *list(shape)[1:]])


def _with_dims(runtime: ModuleType, model: Any, config: ModelConfig, index: int) -> Any:
    """The shape of an input as the configuration gives it; its own if the configuration says nothing of it."""
    port = model.inputs[index]
    given = _configured(port, config.input)
    if given is None:
        return port.partial_shape
    dims = given.dims if given.reshape is None else given.reshape.shape
    first = [runtime.Dimension(-1)] if config.max_batch_size > 0 else []
    return runtime.PartialShape([*first, *(runtime.Dimension(size) for size in dims)])


def _configured(port: Any, tensors: Sequence[ModelInput]) -> ModelInput | None:
    names = own_names(port)
    return next((tensor for tensor in tensors if tensor.name in names and tensor.dims), None)


def _apply(model: Any, shapes: dict[int, Any], name: str) -> None:
    try:
        model.reshape(shapes)
    except Exception as error:
        advice = "change the dims of the inputs or leave RESHAPE_IO_LAYERS out"
        fault = Fault(f"the model cannot take these dims: {reason(error)}", field="parameters.RESHAPE_IO_LAYERS", advice=advice)
        raise ConfigError([fault], name) from error


def _refuse_impossible(model: Any, name: str) -> None:
    """Raise ModelError for inputs that OpenVINO does not compile, or that end the process when it does."""
    for port in model.inputs:
        if any(size.is_static and not size.get_length() for size in _sizes(port.partial_shape)):
            raise ModelError(f"model '{name}': input '{min(own_names(port))}' of shape {port.partial_shape} can hold nothing")
        if port.partial_shape.rank.is_dynamic:
            raise ModelError(
                f"model '{name}': input '{min(own_names(port))}' has any number of dimensions, which OpenVINO cannot compile; "
                "write its dims in config.pbtxt and set the parameter RESHAPE_IO_LAYERS to YES"
            )


def _whole_shapes_given(model: Any, config: ModelConfig) -> bool:
    """Whether the dims of an input are as many as the model's: then no dimension is left for the batch."""
    given = ((port, _configured(port, config.input)) for port in model.inputs)
    return any(tensor is not None and len(tensor.dims) == len(port.partial_shape) for port, tensor in given)


def _shown(model: Any) -> str:
    return ", ".join(f"{min(own_names(port))} {port.partial_shape}" for port in (*model.inputs, *model.outputs))
