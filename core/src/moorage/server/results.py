"""What a model answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from moorage.errors import MoorageError
from moorage.types import InferRequest, InferResponse, ParameterValue


class InferResult(Mapping[str, np.ndarray]):
    """The outputs of a response by name. Strings are arrays of `bytes`, BF16 arrays have the dtype of `ml_dtypes.bfloat16`."""

    __slots__ = ("_arrays", "_response", "request_id")

    def __init__(self, response: InferResponse, request_id: str = "") -> None:
        self._response = response
        self._arrays = {tensor.name: tensor.array for tensor in response.outputs}
        self.request_id = request_id
        """What the request was given as its id."""

    def __getitem__(self, name: str) -> np.ndarray:
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def __repr__(self) -> str:
        tensors = ", ".join(f"{tensor.name}: {tensor.datatype.wire}{list(tensor.shape)}" for tensor in self._response.outputs)
        return f"<{type(self).__name__} of {self.model_name} version {self.model_version}: {tensors}>"

    @property
    def model_name(self) -> str:
        """The model that answered."""
        return self._response.model_name

    @property
    def model_version(self) -> int:
        """The version that answered."""
        return self._response.model_version

    @property
    def parameters(self) -> Mapping[str, ParameterValue]:
        """Parameters that the model has set on its response."""
        return self._response.parameters

    @property
    def datatypes(self) -> Mapping[str, str]:
        """The outputs' data types, as in requests: "FP32", "BYTES"."""
        return {tensor.name: tensor.datatype.wire for tensor in self._response.outputs}


def result_of(answer: InferResponse | MoorageError, request: InferRequest) -> InferResult:
    """The result of a response. Raises the error that the answer is, or carries."""
    if isinstance(answer, MoorageError):
        raise answer
    if answer.error is not None:
        raise answer.error
    return InferResult(answer, request.id)
