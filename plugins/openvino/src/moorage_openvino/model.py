"""A loaded OpenVINO model and its instances."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from moorage.backend import BatchInstance, LoadContext, LoadedModel, Placement, Signature
from moorage.config.schema import InstanceKind
from moorage.errors import ModelError
from moorage.types import DataType
from moorage_openvino.compiling import compile_model
from moorage_openvino.faults import load_error, run_error
from moorage_openvino.padding import PaddedInstance
from moorage_openvino.ports import Port, read_ports, signature
from moorage_openvino.settings import OpenVinoSettings
from moorage_openvino.shapes import batch_in_layout, prepare
from moorage_openvino.tensors import Reader, Writer, reader_of, texts, writer_of

_log = logging.getLogger(__name__)


class OpenVinoModel(LoadedModel):
    """A version's model, compiled once. Each instance has a request of its own, which two threads could not share."""

    def __init__(self, context: LoadContext, runtime: ModuleType, core: Any, model: Any, settings: OpenVinoSettings) -> None:
        self._name = context.model_name
        self._padding = settings.padding
        self._runtime = runtime
        if not model.outputs:
            raise ModelError(f"model '{self._name}' version {context.version}: {context.model_file} describes no outputs")
        try:
            batch_known = batch_in_layout(runtime, model)
            self._fixed_batch = prepare(runtime, model, context.config, settings, batch_known=batch_known)
            self._inputs, self._outputs = read_ports(model, context.config)
        except Exception as error:
            raise load_error(error, context.model_name, context.version, context.model_file) from error
        self._signature = signature(self._inputs, self._outputs, batches=batch_known, fixed_batch=self._fixed_batch)
        _tell_of_doubles(self._name, (*self._inputs, *self._outputs))
        self._stateful = bool(model.get_sinks())
        self._compiled: Any = compile_model(core, model, context, settings)

    def signature(self) -> Signature:
        return self._signature

    def instance(self, placement: Placement) -> BatchInstance:
        if placement.kind is InstanceKind.KIND_GPU:
            raise ModelError(f"model '{self._name}': OpenVINO does not run on NVIDIA GPUs; place the model on KIND_CPU")
        request = self._compiled.create_infer_request()
        writers = [writer_of(self._runtime, port) for port in self._inputs]
        kind = TextInstance if any(port.datatype is DataType.BYTES for port in self._outputs) else OpenVinoInstance
        instance = kind(self._name, request, writers, self._outputs, stateful=self._stateful)
        if not self._fixed_batch:
            return instance
        return PaddedInstance(instance, self._name, self._fixed_batch, padding=self._padding)

    def close(self) -> None:
        self._compiled = None


class OpenVinoInstance(BatchInstance):
    """Feeds every input at every run, so that none of an earlier request is left, and copies what comes out.

    A model with a state of its own begins each run without one.
    """

    def __init__(self, model: str, request: Any, writers: Sequence[Writer], outputs: Sequence[Port], *, stateful: bool) -> None:
        self._model = model
        self._request = request
        self._writers = writers
        self._outputs = {port.name: (port.index, reader_of(port)) for port in outputs}
        self._stateful = stateful
        self._fed: list[np.ndarray] = []

    def run(self, inputs: Mapping[str, np.ndarray], outputs: Sequence[str]) -> Mapping[str, np.ndarray]:
        request = self._request
        self._fed = [writer.feed(request, inputs) for writer in self._writers]
        try:
            if self._stateful:
                request.reset_state()
            return self._infer(request, outputs)
        except Exception as error:
            raise run_error(error, self._model) from error

    def close(self) -> None:
        del self._request
        self._fed = []

    def _infer(self, request: Any, outputs: Sequence[str]) -> Mapping[str, np.ndarray]:
        """Run, and copy the views of the outputs, which the next run overwrites."""
        views = request.infer(share_outputs=True).to_tuple()
        known = self._outputs
        return {name: read(views[index]) for name in outputs for index, read in (known[name],)}


class TextInstance(OpenVinoInstance):
    """A model with strings among its outputs: a view of those, which `infer` would make, is a fault in memory."""

    def _infer(self, request: Any, outputs: Sequence[str]) -> Mapping[str, np.ndarray]:
        request.start_async()
        request.wait()
        return {name: self._read(request, *self._outputs[name]) for name in outputs}

    @staticmethod
    def _read(request: Any, index: int, read: Reader) -> np.ndarray:
        tensor = request.get_output_tensor(index)
        return read(tensor if read is texts else tensor.data)


def _tell_of_doubles(model: str, ports: Sequence[Port]) -> None:
    doubles = ", ".join(f"'{port.name}'" for port in ports if port.datatype is DataType.FP64 and not port.passes)
    if doubles:
        _log.warning("model '%s': OpenVINO computes with 32 bits where the model has FP64 (%s)", model, doubles)
