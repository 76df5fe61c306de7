"""A package of AOT Inductor (`torch._inductor.aoti_compile_and_package`) and its instances."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Sequence
from typing import Any

from moorage.backend import BatchInstance, LoadContext, LoadedModel, Placement, Signature, TensorSpec
from moorage.config.schema import ModelConfig, ModelInput, ModelOutput
from moorage.errors import ConfigError, Fault, ModelError
from moorage.types import DataType
from moorage_torchscript.binding import input_names, output_names
from moorage_torchscript.devices import device_of
from moorage_torchscript.dtypes import to_tensor
from moorage_torchscript.faults import load_error
from moorage_torchscript.instance import Call, Feed, Take, TorchInstance, Wiring
from moorage_torchscript.leaves import Leaf, choose, input_leaves, output_leaves, paths
from moorage_torchscript.options import Options
from moorage_torchscript.running import Running

_MODEL = "model"
"""The name of the program in a package, unless it was given another."""


class CompiledModel(LoadedModel):
    """A version's compiled `model.pt2`. It knows how its arguments nest, but neither types nor shapes.

    Each instance has a loader of its own: one loader runs one request after the other.
    """

    def __init__(self, torch: Any, context: LoadContext, content: bytes, options: Options) -> None:
        self._torch = torch
        self._context = context
        self._options = options
        self._lock = threading.Lock()
        self._content: bytes | None = content
        config = context.config
        self._spare: Any = self._loaded(-1)
        self._check_device()
        found_inputs, found_outputs = _leaves(self._spare.get_call_spec())
        _refuse_incomplete(config, found_inputs, found_outputs)
        self._inputs, input_faults = choose(input_names(config), found_inputs, "input")
        self._outputs, output_faults = choose(output_names(config), found_outputs, "output")
        if faults := [*input_faults, *output_faults]:
            raise ConfigError(faults, context.model_name)
        self._signature = Signature(_specs(self._inputs, found_inputs), _specs(self._outputs, found_outputs))
        self._slots = len(found_inputs)

    def signature(self) -> Signature:
        return self._signature

    def instance(self, placement: Placement) -> BatchInstance:
        torch, name = self._torch, self._context.model_name
        device = device_of(torch, placement, name)
        if device.type != self._device:
            raise ModelError(
                f"model '{name}' was compiled for {self._device}, but instance_group places it on {device.type}; "
                f"write kind: {'KIND_GPU' if self._device == 'cuda' else 'KIND_CPU'}, or compile it for the other"
            )
        loader = self._loader(device)
        return TorchInstance(name, _call(loader), self._wiring(device), Running(torch, self._options, device))

    def close(self) -> None:
        self._spare = self._content = None

    def _check_device(self) -> None:
        self._device = self._spare.get_metadata().get("AOTI_DEVICE_KEY", "cpu")

    def _loader(self, device: Any) -> Any:
        with self._lock:
            if device.type == "cpu" and self._spare is not None:
                loader, self._spare = self._spare, None
                return loader
            return self._loaded(-1 if device.index is None else device.index)

    def _loaded(self, device_index: int) -> Any:
        """Unpack and load the package. PyTorch wants a file, and keeps nothing of it."""
        context, content = self._context, self._content
        try:
            with tempfile.NamedTemporaryFile(suffix=".pt2") as file:
                file.write(content or b"")
                file.flush()
                return self._torch._C._aoti.AOTIModelPackageLoader(file.name, _MODEL, False, 1, device_index)
        except Exception as error:
            raise load_error(error, context.model_name, context.version, context.model_file) from error

    def _wiring(self, device: Any) -> Wiring:
        config = self._context.config
        types = {item.name: item.data_type for item in config.input}
        feeds = [
            Feed(name, leaf.position, self._converter(types.get(name, DataType.FP32), device))
            for name, leaf in self._inputs.items()
        ]
        takes = {name: Take(name, _picker(leaf.position)) for name, leaf in self._outputs.items()}
        return Wiring(tuple(feeds), takes, (None,) * self._slots, config.batches)

    def _converter(self, datatype: DataType, device: Any) -> Callable[[Any], Any]:
        """Inputs are copied: a compiled program may write into them, and does not say so."""
        convert = to_tensor(self._torch, datatype, copy=True)
        return convert if device.type == "cpu" else lambda array: convert(array).to(device)


def _call(loader: Any) -> Call:
    run = loader.boxed_run
    return lambda values: run(list(values))


def _picker(position: int) -> Callable[[Sequence[Any]], Any]:
    return lambda results: results[position]


def _leaves(call_spec: Sequence[str]) -> tuple[tuple[Leaf, ...], tuple[Leaf, ...]]:
    into, out = paths(call_spec[0]), paths(call_spec[1])
    return input_leaves(into, range(len(into))), output_leaves(out, range(len(out)))


def _specs(chosen: dict[str, Leaf], leaves: Sequence[Leaf]) -> tuple[TensorSpec, ...]:
    given = {leaf.position: name for name, leaf in chosen.items()}
    return tuple(TensorSpec(given.get(leaf.position, leaf.name), None, None) for leaf in leaves)


def _refuse_incomplete(config: ModelConfig, inputs: Sequence[Leaf], outputs: Sequence[Leaf]) -> None:
    tensors: tuple[ModelInput | ModelOutput, ...] = (*config.input, *config.output)
    if config.input and config.output and all(item.dims and item.data_type is not DataType.INVALID for item in tensors):
        return
    message = (
        "a compiled program tells no data types and shapes, so the configuration must give those of every input and output"
    )
    names = [", ".join(leaf.name for leaf in leaves) for leaves in (inputs, outputs)]
    advice = f"its inputs are called {names[0]}, its outputs {names[1]}"
    raise ConfigError([Fault(message, field="input, output", advice=advice)], config.name)
