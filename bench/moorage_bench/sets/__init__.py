"""The sets of benchmarks, by name. Each is a function that measures some points."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from moorage_bench.measure import Point
from moorage_bench.plan import Plan
from moorage_bench.sets import (
    backends,
    grpc_identity,
    http_identity,
    memory,
    onnx_json,
    overhead,
    poll,
    reload,
    scan,
    slow_load,
    storage,
)

Set = Callable[[Plan], list[Point]]
"""Measures. Raises MissingPeerError when a side or a tool cannot be had, LoadError when a side answers wrongly."""

SETS: Mapping[str, Set] = {
    "overhead": overhead.measure,
    "backends": backends.measure,
    "http_identity": http_identity.measure,
    "grpc_identity": grpc_identity.measure,
    "onnx_json": onnx_json.measure,
    "scan": scan.measure,
    "poll": poll.measure,
    "reload": reload.measure,
    "slow_load": slow_load.measure,
    "memory": memory.measure,
    "storage": storage.measure,
}
