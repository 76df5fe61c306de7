"""The model's responses and errors as the server's."""

from __future__ import annotations

from moorage.config.schema import ModelConfig
from moorage.errors import (
    AlreadyExists,
    Cancelled,
    Internal,
    InvalidArgument,
    ModelError,
    MoorageError,
    NotFound,
    Unavailable,
    Unsupported,
)
from moorage.types import DataType, InferRequest, InferResponse
from moorage.types import Tensor as ServerTensor
from moorage_python.runtime.failures import ErrorCode, TritonError
from moorage_python.runtime.host import HostFailure
from moorage_python.runtime.responses import InferenceResponse, parameters_of
from moorage_python.runtime.tensors import settled

_ERRORS: dict[ErrorCode, type[MoorageError]] = {
    ErrorCode.UNKNOWN: MoorageError,
    ErrorCode.INTERNAL: Internal,
    ErrorCode.NOT_FOUND: NotFound,
    ErrorCode.INVALID_ARG: InvalidArgument,
    ErrorCode.UNAVAILABLE: Unavailable,
    ErrorCode.UNSUPPORTED: Unsupported,
    ErrorCode.ALREADY_EXISTS: AlreadyExists,
    ErrorCode.CANCELLED: Cancelled,
}
_BY_NUMBER = {datatype.value: datatype for datatype in DataType}


class Answers:
    """Knows the outputs that a model's configuration declares."""

    def __init__(self, model: str, config: ModelConfig) -> None:
        self._model = model
        self._types = {output.name: output.data_type for output in config.output}
        self.names = frozenset(self._types)

    def response(self, response: InferenceResponse, request: InferRequest) -> InferResponse:
        """The outputs that were asked for, or the error that the model made. Raises ModelError for a wrong type."""
        error = response.error()
        if error is not None:
            return InferResponse([], error=_made_by_model(error))
        asked = {output.name for output in request.outputs} if request.outputs else self._types
        received = [tensor.array for tensor in request.inputs.values()]
        outputs = []
        for tensor in response.output_tensors():
            name = tensor.name()
            if name in asked:
                datatype = _BY_NUMBER[tensor.triton_dtype()]
                if datatype is not self._types.get(name, datatype):
                    raise self._wrong_type(name, datatype)
                outputs.append(ServerTensor(name, datatype, settled(tensor, received)))
        parameters = parameters_of(response)
        return InferResponse(outputs, parameters) if parameters else InferResponse(outputs)

    def response_or_error(self, response: InferenceResponse, request: InferRequest) -> InferResponse:
        """As `response`, with the error inside."""
        try:
            return self.response(response, request)
        except MoorageError as error:
            return InferResponse([], error=error)

    def failure(self, failure: HostFailure) -> MoorageError:
        """The error for a request that the model's code has failed."""
        kind = ModelError if failure.code is ErrorCode.INTERNAL else _ERRORS[failure.code]
        return kind(f"model '{self._model}': {failure}")

    def error(self, message: str) -> MoorageError:
        """The error for a request that the model has left unanswered."""
        return ModelError(f"model '{self._model}': {message}")

    def _wrong_type(self, name: str, found: DataType) -> ModelError:
        wanted = self._types[name]
        return ModelError(
            f"model '{self._model}': output '{name}' is {found.wire}, but its configuration says {wanted.config}; "
            f"convert the array, e.g. array.astype('{wanted.numpy}'), or change data_type"
        )


def _made_by_model(error: TritonError) -> MoorageError:
    return _ERRORS[error.code()](error.message().encode(errors="backslashreplace").decode())
