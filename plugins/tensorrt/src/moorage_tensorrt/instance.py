"""Runs requests on one execution context of a GPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from moorage.backend import BatchInstance
from moorage.errors import ModelError, RequestError
from moorage_tensorrt.contexts import ProfileContext, Shapes, choose
from moorage_tensorrt.cuda import Cuda
from moorage_tensorrt.engine import EngineTensor
from moorage_tensorrt.memory import Buffer, make_allocator
from moorage_tensorrt.runtimes import TensorRt

Arrays = Mapping[str, np.ndarray]


class TensorRtInstance(BatchInstance):
    """Copies inputs to the GPU, runs, copies outputs back: all on a stream of its own, and with memory of its own."""

    def __init__(
        self,
        model: str,
        cuda: Cuda,
        tensorrt: TensorRt,
        *,
        device: int,
        tensors: Sequence[EngineTensor],
        contexts: Sequence[ProfileContext],
        stream: int,
    ) -> None:
        self._model = model
        self._cuda = cuda
        self._tensorrt = tensorrt
        self._device = device
        self._inputs = [tensor for tensor in tensors if tensor.is_input]
        self._outputs = [tensor for tensor in tensors if not tensor.is_input]
        self._contexts = list(contexts)
        self._stream = stream
        self._buffers = {tensor.name: Buffer(cuda) for tensor in tensors}
        self._allocators: dict[str, Any] = {}

    def run(self, inputs: Arrays, outputs: Sequence[str]) -> Mapping[str, np.ndarray]:
        arrays = {tensor.name: self._checked(tensor, inputs) for tensor in self._inputs}
        chosen = choose(self._model, self._contexts, self._shapes(arrays))
        self._cuda.use(self._device)
        self._tensorrt.log.take()
        try:
            return self._run(chosen.context, arrays, outputs)
        except BaseException:
            with suppress(ModelError):
                self._cuda.synchronize(self._stream)  # nothing may be under way with arrays that are given up
            raise

    def close(self) -> None:
        self._cuda.use(self._device)
        self._contexts.clear()
        for buffer in self._buffers.values():
            buffer.close()
        self._cuda.end_stream(self._stream)

    def _run(self, context: Any, arrays: Arrays, outputs: Sequence[str]) -> Mapping[str, np.ndarray]:
        for tensor in self._inputs:
            self._give(context, tensor, arrays[tensor.name])
        missing = context.infer_shapes()
        if missing:
            raise ModelError(
                f"model '{self._model}': TensorRT cannot tell the shapes of {', '.join(missing)}: {self._reason()}"
            )
        on_host = {tensor.name: self._bind(context, tensor) for tensor in self._outputs}
        if not context.execute_async_v3(self._stream):
            raise ModelError(f"model '{self._model}': TensorRT cannot run: {self._reason()}")
        self._cuda.synchronize(self._stream)
        results = {tensor.name: self._result(context, tensor, on_host) for tensor in self._outputs if tensor.name in outputs}
        self._cuda.synchronize(self._stream)
        return results

    def _checked(self, tensor: EngineTensor, inputs: Arrays) -> np.ndarray:
        """The array for an input, contiguous. Raises RequestError if there is none or of another type."""
        array = inputs.get(tensor.name)
        where = f"model '{self._model}': input '{tensor.name}'"
        if array is None:
            raise RequestError(f"{where} is missing")
        if array.dtype != tensor.datatype.numpy:
            raise RequestError(f"{where} must be {tensor.datatype.wire}, but is {array.dtype}")
        if len(array.shape) != len(tensor.shape) or any(
            wanted not in (-1, size) for wanted, size in zip(tensor.shape, array.shape, strict=True)
        ):
            raise RequestError(f"{where} has shape {list(array.shape)}, the model takes {list(tensor.shape)}")
        return np.asarray(array, order="C")

    def _shapes(self, arrays: Arrays) -> Shapes:
        """What the profiles are asked about."""
        return {
            tensor.name: tuple(arrays[tensor.name].ravel().tolist()) if tensor.on_host else arrays[tensor.name].shape
            for tensor in self._inputs
        }

    def _give(self, context: Any, tensor: EngineTensor, array: np.ndarray) -> None:
        """Tell the context where an input lies. `array` must be kept until the run is over."""
        if not context.set_input_shape(tensor.name, array.shape):
            raise RequestError(
                f"model '{self._model}': input '{tensor.name}' of shape {list(array.shape)} is refused: {self._reason()}"
            )
        address = array.ctypes.data
        if not tensor.on_host:
            address = self._buffers[tensor.name].reserve(array.nbytes)
            self._cuda.upload(address, array, self._stream)
        context.set_tensor_address(tensor.name, address)

    def _bind(self, context: Any, tensor: EngineTensor) -> np.ndarray | None:
        """Give an output memory. An array if it is written into the memory of the host."""
        shape = tuple(context.get_tensor_shape(tensor.name))
        if any(size < 0 for size in shape):
            context.set_output_allocator(tensor.name, self._allocator(tensor.name))
            return None
        if tensor.on_host:
            array = np.empty(shape, tensor.datatype.numpy)
            context.set_tensor_address(tensor.name, array.ctypes.data)
            return array
        size = int(np.prod(shape, dtype=np.int64)) * tensor.datatype.size
        context.set_tensor_address(tensor.name, self._buffers[tensor.name].reserve(size))
        return None

    def _allocator(self, name: str) -> Any:
        if name not in self._allocators:
            self._allocators[name] = make_allocator(self._tensorrt.trt, self._buffers[name])
        return self._allocators[name]

    def _result(self, context: Any, tensor: EngineTensor, on_host: Mapping[str, np.ndarray | None]) -> np.ndarray:
        ready = on_host[tensor.name]
        if ready is not None:
            return ready
        shape = tuple(context.get_tensor_shape(tensor.name))
        if any(size < 0 for size in shape):
            shape = self._allocators[tensor.name].shape
        array = np.empty(shape, tensor.datatype.numpy)
        self._cuda.download(array, self._buffers[tensor.name].address, self._stream)
        return array

    def _reason(self) -> str:
        return str(self._tensorrt.log.take())
