"""Whether `model.bin` holds the weights that `model.xml` names."""

from __future__ import annotations

import re
from pathlib import Path

from moorage.errors import ModelError, NotFound

_DATA = re.compile(rb"<data\b[^>]*>")
_OFFSET = re.compile(rb"\boffset\s*=\s*\"(\d+)\"")
_SIZE = re.compile(rb"\bsize\s*=\s*\"(\d+)\"")


def needed_bytes(xml: bytes) -> int:
    """Where the last constant of a model ends in its file of weights; 0 for a model without constants."""
    ends = [0]
    for tag in _DATA.finditer(xml):
        offset, size = _OFFSET.search(tag.group()), _SIZE.search(tag.group())
        if offset and size:
            ends.append(int(offset.group(1)) + int(size.group(1)))
    return max(ends)


def check_weights(model: str, xml: Path, weights: Path, needed: int) -> None:
    """Raise NotFound if the file of weights is missing, ModelError if it is not this model's or not all of it."""
    if not needed:
        return
    if not weights.is_file():
        raise NotFound(f"model '{model}': {xml} needs its weights, but there is no file {weights}; copy it next to it")
    size = weights.stat().st_size
    if size != needed:
        what = "it is not complete" if size < needed else "it belongs to another model"
        raise ModelError(
            f"model '{model}': {weights} has {size} bytes, but the constants in {xml.name} take {needed}: {what}; "
            f"copy {xml.name} and {weights.name} as they were saved together"
        )
