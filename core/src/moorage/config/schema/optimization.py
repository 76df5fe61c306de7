"""Optimisation settings."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from moorage.config.schema.attributes import mapping
from moorage.config.schema.enums import ModelPriority


@frozen
class Graph:
    level: int = 0


@frozen
class CudaShape:
    dim: tuple[int, ...] = ()


@frozen
class CudaLowerBound:
    batch_size: int = 0
    input: Mapping[str, CudaShape] = mapping()


@frozen
class CudaGraphSpec:
    batch_size: int = 0
    input: Mapping[str, CudaShape] = mapping()
    graph_lower_bound: CudaLowerBound | None = None


@frozen
class Cuda:
    graphs: bool = False
    busy_wait_events: bool = False
    graph_spec: tuple[CudaGraphSpec, ...] = ()
    output_copy_stream: bool = False


@frozen
class Accelerator:
    name: str = ""
    parameters: Mapping[str, str] = mapping()


@frozen
class ExecutionAccelerators:
    gpu_execution_accelerator: tuple[Accelerator, ...] = ()
    cpu_execution_accelerator: tuple[Accelerator, ...] = ()


@frozen
class PinnedMemoryBuffer:
    enable: bool = False


@frozen
class OptimizationPolicy:
    graph: Graph | None = None
    priority: ModelPriority = ModelPriority.PRIORITY_DEFAULT
    cuda: Cuda | None = None
    execution_accelerators: ExecutionAccelerators | None = None
    input_pinned_memory: PinnedMemoryBuffer | None = None
    output_pinned_memory: PinnedMemoryBuffer | None = None
    gather_kernel_buffer_threshold: int = 0
    eager_batching: bool = False
