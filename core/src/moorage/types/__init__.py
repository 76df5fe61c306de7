"""The values that travel through the server: data types, tensors, requests, versions."""

from moorage.types.datatype import DataType
from moorage.types.inference import (
    InferRequest,
    InferResponse,
    Job,
    ParameterValue,
    RequestedOutput,
    Sink,
)
from moorage.types.tensor import Tensor
from moorage.types.version import LATEST, parse_version

__all__ = [
    "LATEST",
    "DataType",
    "InferRequest",
    "InferResponse",
    "Job",
    "ParameterValue",
    "RequestedOutput",
    "Sink",
    "Tensor",
    "parse_version",
]
