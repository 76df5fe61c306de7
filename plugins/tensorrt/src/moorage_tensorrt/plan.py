"""What the first bytes of a plan tell without TensorRT."""

from __future__ import annotations

import struct
from pathlib import Path

from moorage.errors import ModelError, NotFound

HEADER = 64
"""Bytes of a plan's header."""
RTX = b"vtrt"
"""How plans of TensorRT for RTX begin; those of TensorRT begin with another letter before the `trt`."""
_ZIP, _ONNX_LIKE = b"PK\x03\x04", b"\x08"
_GUESSES = {
    _ZIP: "an archive",
    _ONNX_LIKE: "perhaps an ONNX model, of which trtexec makes a plan",
    b"version https": "a Git LFS pointer",
}


def check_plan(model: str, path: Path) -> bool:
    """Whether the plan is one for TensorRT for RTX. Raises NotFound or ModelError, naming the file, if it is no plan at all."""
    if not path.is_file():
        raise NotFound(f"model '{model}': no file {path}; put model.plan there or name the file in default_model_filename")
    size = path.stat().st_size
    with path.open("rb") as file:
        header = file.read(HEADER)
    if not header:
        raise ModelError(f"model '{model}': {path} is empty; copy the plan again")
    if header[1:4] != b"trt":
        guess = next((f", but {what}" for start, what in _GUESSES.items() if header.startswith(start)), "")
        raise ModelError(f"model '{model}': {path} is no TensorRT plan{guess} (it begins with {header[:4]!r})")
    if len(header) < HEADER or (header.startswith(RTX) and _announced(header) != size):
        raise ModelError(f"model '{model}': {path} is not a whole plan: it has {size} bytes; copy it again")
    return header.startswith(RTX)


def _announced(header: bytes) -> int:
    """The size of a plan of TensorRT for RTX, in bytes, as its header has it."""
    return int(struct.unpack_from("<Q", header, 16)[0])
