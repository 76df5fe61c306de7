"""The classification extension: the greatest values of an output as "VALUE:INDEX[:LABEL]" strings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from moorage.errors import RequestError
from moorage.types import DataType, Tensor


def classify(tensor: Tensor, count: int, labels: Sequence[str], *, batched: bool) -> Tensor:
    """The top `count` classes of a tensor (all, if it has fewer), for each row of a batch. A BYTES tensor of the same name.

    Shape [n] becomes [k]; with a batch, [b, ...] becomes [b, k]. Raises RequestError for tensors without numbers.
    """
    if tensor.datatype in (DataType.BYTES, DataType.BOOL):
        raise RequestError(f"output '{tensor.name}' is {tensor.datatype.wire} and cannot be classified")
    array = tensor.array
    rows = array.reshape(array.shape[0], -1) if batched and array.ndim > 0 else array.reshape(1, -1)
    top = min(count, rows.shape[1])
    order = np.argsort(-rows.astype(np.float64), axis=1, kind="stable")[:, :top]
    classes = np.empty((rows.shape[0], top), dtype=object)
    for row, indices in enumerate(order):
        for place, index in enumerate(indices):
            classes[row, place] = _text(rows[row, index], int(index), labels).encode()
    return Tensor(tensor.name, DataType.BYTES, classes if batched else classes[0])


def _text(value: np.generic, index: int, labels: Sequence[str]) -> str:
    number = f"{float(value):f}" if np.issubdtype(value.dtype, np.floating) or value.dtype.kind == "V" else str(value)
    label = f":{labels[index]}" if index < len(labels) and labels[index] else ""
    return f"{number}:{index}{label}"
