"""Batches for a model that takes exactly so many rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from moorage.backend import BatchInstance
from moorage.errors import RequestError


class PaddedInstance(BatchInstance):
    """Fills up batches to the size that the model is compiled for, if it may, and cuts the results down again."""

    def __init__(self, instance: BatchInstance, model: str, size: int, *, padding: bool) -> None:
        self._instance = instance
        self._model = model
        self._size = size
        self._padding = padding

    def run(self, inputs: Mapping[str, np.ndarray], outputs: Sequence[str]) -> Mapping[str, np.ndarray]:
        rows = {len(array) for array in inputs.values()}
        if rows == {self._size}:
            return self._instance.run(inputs, outputs)
        if not self._padding or len(rows) != 1 or max(rows) > self._size:
            raise RequestError(
                f"model '{self._model}' runs batches of {self._size}, but has got {', '.join(map(str, sorted(rows)))}; "
                "set the parameter ENABLE_BATCH_PADDING to YES to have smaller ones filled up"
            )
        count = max(rows)
        results = self._instance.run({name: self._filled(array) for name, array in inputs.items()}, outputs)
        return {name: array[:count] for name, array in results.items()}

    def close(self) -> None:
        self._instance.close()

    def _filled(self, array: np.ndarray) -> np.ndarray:
        padded = np.full((self._size, *array.shape[1:]), b"", object) if array.dtype.kind == "O" else None
        if padded is None:
            padded = np.zeros((self._size, *array.shape[1:]), array.dtype)
        padded[: len(array)] = array
        return padded
