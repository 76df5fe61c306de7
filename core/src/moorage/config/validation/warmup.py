"""Checks of warm-up requests."""

from __future__ import annotations

from collections.abc import Iterator

from moorage.config.parsed import ParsedConfig, item_path
from moorage.config.schema import WarmupInput
from moorage.errors import Fault
from moorage.types.datatype import DataType


def warmup_faults(parsed: ParsedConfig) -> Iterator[Fault]:
    """Faults of `model_warmup`; a warm-up of batch size 0 is never run and so not looked at."""
    for index, warmup in enumerate(parsed.config.model_warmup):
        if not warmup.batch_size:
            continue
        for name, tensor in warmup.inputs.items():
            path = item_path(f"model_warmup[{index}].inputs", name)
            owner = f"input '{name}' of warm-up '{warmup.name}' of model '{parsed.config.name}'"
            yield from _input_faults(parsed, path, owner, tensor)


def _input_faults(parsed: ParsedConfig, path: str, owner: str, tensor: WarmupInput) -> Iterator[Fault]:
    if tensor.data_type is DataType.INVALID:
        yield parsed.fault(f"{path}.data_type", f"{owner} has no data_type", "write the input's data type")
    for index, size in enumerate(tensor.dims):
        if size < 0:
            yield parsed.fault(f"{path}.dims[{index}]", f"{owner} has the size {size}", "write the size to send")
    if tensor.data is None:
        yield parsed.fault(path, f"{owner} has no data", "write zero_data: true, random_data: true or input_data_file")
