"""The enums of a configuration; `DataType` is in `moorage.types`."""

from __future__ import annotations

import enum


class InstanceKind(enum.Enum):
    KIND_AUTO = 0
    KIND_GPU = 1
    KIND_CPU = 2
    KIND_MODEL = 3


class SecondaryDeviceKind(enum.Enum):
    KIND_NVDLA = 0


class InputFormat(enum.Enum):
    FORMAT_NONE = 0
    FORMAT_NHWC = 1
    FORMAT_NCHW = 2


class BatchInputKind(enum.Enum):
    BATCH_ELEMENT_COUNT = 0
    BATCH_ACCUMULATED_ELEMENT_COUNT = 1
    BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO = 2
    BATCH_MAX_ELEMENT_COUNT_AS_SHAPE = 3
    BATCH_ITEM_SHAPE = 4
    BATCH_ITEM_SHAPE_FLATTEN = 5


class BatchOutputKind(enum.Enum):
    BATCH_SCATTER_WITH_INPUT_SHAPE = 0


class ModelPriority(enum.Enum):
    PRIORITY_DEFAULT = 0
    PRIORITY_MAX = 1
    PRIORITY_MIN = 2


class TimeoutAction(enum.Enum):
    REJECT = 0
    DELAY = 1


class ControlKind(enum.Enum):
    CONTROL_SEQUENCE_START = 0
    CONTROL_SEQUENCE_READY = 1
    CONTROL_SEQUENCE_END = 2
    CONTROL_SEQUENCE_CORRID = 3
