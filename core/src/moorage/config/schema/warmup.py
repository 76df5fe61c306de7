"""Warm-up requests."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from moorage.config.schema.attributes import mapping, oneof
from moorage.types.datatype import DataType


@frozen
class ZeroData:
    enable: bool = True


@frozen
class RandomData:
    enable: bool = True


@frozen
class DataFile:
    path: str = ""


@frozen
class WarmupInput:
    """`data` is boxed: `zero_data` and `random_data` are both booleans and must stay apart."""

    data_type: DataType = DataType.INVALID
    dims: tuple[int, ...] = ()
    data: ZeroData | RandomData | DataFile | None = oneof(zero_data=ZeroData, random_data=RandomData, input_data_file=DataFile)


@frozen
class Warmup:
    name: str = ""
    batch_size: int = 0
    inputs: Mapping[str, WarmupInput] = mapping()
    count: int = 0
