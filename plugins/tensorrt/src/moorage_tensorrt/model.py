"""A loaded plan: an engine on each GPU, and instances of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attrs import frozen

from moorage.backend import BatchInstance, LoadContext, LoadedModel, Placement, Signature
from moorage.config.schema import ModelPriority
from moorage.errors import ConfigError, Fault, Unsupported
from moorage_tensorrt.contexts import ProfileContext, make_context
from moorage_tensorrt.cuda import Cuda
from moorage_tensorrt.engine import EngineTensor, read_bounds, read_signature, read_tensors
from moorage_tensorrt.instance import TensorRtInstance
from moorage_tensorrt.runtimes import TensorRt, make_engine
from moorage_tensorrt.settings import TensorRtSettings

_NVDLA = "KIND_NVDLA"


@frozen(eq=False)
class LoadedEngine:
    """An engine on one device; `runtime` has made it, and lives as long."""

    device: int
    runtime: Any
    engine: Any
    tensors: tuple[EngineTensor, ...]


class TensorRtModel(LoadedModel):
    """A version's plans. Instances on one GPU share its engine; each has contexts and a stream of its own."""

    def __init__(self, context: LoadContext, tensorrt: TensorRt, cuda: Cuda, settings: TensorRtSettings) -> None:
        self._context = context
        self._model = context.model_name
        self._tensorrt = tensorrt
        self._cuda = cuda
        self._settings = settings
        self._engines: dict[tuple[int, int], LoadedEngine] = {}
        try:
            for placement in context.placements:
                self._engine(placement)
            first = self._engine(context.placements[0])
            self._refuse_batched_shapes(first)
            profiles = sorted({number for placement in context.placements for number in self._profiles(placement, first)})
            bounds = [read_bounds(first.engine, first.tensors, number) for number in profiles]
            self._signature = read_signature(first.tensors, bounds)
        except BaseException:
            self.close()
            raise

    def signature(self) -> Signature:
        return self._signature

    def instance(self, placement: Placement) -> BatchInstance:
        self._cuda.use(placement.device_id)
        loaded = self._engine(placement)
        optimization = self._context.config.optimization
        priority = optimization.priority if optimization is not None else ModelPriority.PRIORITY_DEFAULT
        stream = self._cuda.stream(priority)
        try:
            contexts = self._contexts(placement, loaded, stream)
        except BaseException:
            self._cuda.end_stream(stream)
            raise
        return TensorRtInstance(
            self._model,
            self._cuda,
            self._tensorrt,
            device=loaded.device,
            tensors=loaded.tensors,
            contexts=contexts,
            stream=stream,
        )

    def close(self) -> None:
        """Give the engines back, each before the runtime that made it."""
        while self._engines:
            _, loaded = self._engines.popitem()
            self._cuda.use(loaded.device)
            del loaded

    def _engine(self, placement: Placement) -> LoadedEngine:
        """The engine for a place; made from the plan that is for its GPU if there is none yet."""
        dla = next((number for kind, number in placement.secondary_devices if kind == _NVDLA), -1)
        key = (placement.device_id, dla)
        if key not in self._engines:
            self._cuda.use(placement.device_id)
            path = self._context.file_for(placement)
            runtime, engine = make_engine(self._tensorrt, self._model, path, self._settings, dla_core=dla)
            self._engines[key] = LoadedEngine(placement.device_id, runtime, engine, read_tensors(engine, self._model))
        return self._engines[key]

    def _profiles(self, placement: Placement, loaded: LoadedEngine) -> Sequence[int]:
        """The numbers of the optimization profiles that a place uses. Raises ConfigError naming one that is not there."""
        numbers = [int(name) for name in placement.profiles] or [0]
        count = loaded.engine.num_optimization_profiles
        for number in numbers:
            if number >= count:
                fault = Fault(
                    f"the plan has no optimization profile {number}",
                    field="instance_group.profile",
                    advice=f"its profiles are 0 to {count - 1}",
                )
                raise ConfigError([fault], self._model)
        return list(dict.fromkeys(numbers))

    def _contexts(self, placement: Placement, loaded: LoadedEngine, stream: int) -> list[ProfileContext]:
        strategy = getattr(self._tensorrt.trt.ExecutionContextAllocationStrategy, self._settings.strategy)
        contexts = []
        for number in self._profiles(placement, loaded):
            made = make_context(self._tensorrt, self._model, loaded.engine, strategy=strategy, profile=number, stream=stream)
            contexts.append(ProfileContext(number, made, read_bounds(loaded.engine, loaded.tensors, number)))
        self._cuda.synchronize(stream)
        return contexts

    def _refuse_batched_shapes(self, loaded: LoadedEngine) -> None:
        shapes = [tensor.name for tensor in loaded.tensors if tensor.is_input and tensor.on_host]
        if shapes and self._context.config.max_batch_size > 0:
            raise Unsupported(
                f"model '{self._model}': input '{shapes[0]}' is a shape, which models that batch cannot have; "
                "write max_batch_size: 0 and the whole shapes in dims"
            )
