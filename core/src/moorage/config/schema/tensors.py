"""Inputs and outputs."""

from __future__ import annotations

from attrs import frozen

from moorage.config.schema.enums import BatchInputKind, BatchOutputKind, InputFormat
from moorage.types.datatype import DataType


@frozen
class TensorReshape:
    shape: tuple[int, ...] = ()


@frozen
class ModelInput:
    """`dims` leave out the batch dimension when the model batches; -1 is any size."""

    name: str = ""
    data_type: DataType = DataType.INVALID
    format: InputFormat = InputFormat.FORMAT_NONE
    dims: tuple[int, ...] = ()
    reshape: TensorReshape | None = None
    is_shape_tensor: bool = False
    allow_ragged_batch: bool = False
    optional: bool = False
    is_non_linear_format_io: bool = False


@frozen
class ModelOutput:
    name: str = ""
    data_type: DataType = DataType.INVALID
    dims: tuple[int, ...] = ()
    reshape: TensorReshape | None = None
    label_filename: str = ""
    is_shape_tensor: bool = False
    is_non_linear_format_io: bool = False


@frozen
class BatchInput:
    kind: BatchInputKind = BatchInputKind.BATCH_ELEMENT_COUNT
    target_name: tuple[str, ...] = ()
    data_type: DataType = DataType.INVALID
    source_input: tuple[str, ...] = ()


@frozen
class BatchOutput:
    target_name: tuple[str, ...] = ()
    kind: BatchOutputKind = BatchOutputKind.BATCH_SCATTER_WITH_INPUT_SHAPE
    source_input: tuple[str, ...] = ()
