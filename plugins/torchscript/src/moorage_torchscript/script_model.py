"""A loaded TorchScript model and its instances."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from moorage.backend import BatchInstance, LoadContext, LoadedModel, Placement, Signature
from moorage.config.schema import InstanceKind, ModelConfig
from moorage.errors import ModelError, RequestError
from moorage.types import DataType
from moorage_torchscript.arguments import SCALARS, Argument, Shape, read_arguments, read_result
from moorage_torchscript.binding import Binding, bind, input_names
from moorage_torchscript.devices import device_of
from moorage_torchscript.dtypes import texts, to_tensor
from moorage_torchscript.faults import load_error
from moorage_torchscript.instance import Call, Feed, Take, TorchInstance, Wiring
from moorage_torchscript.naming import Convention, index_of
from moorage_torchscript.options import Options
from moorage_torchscript.running import Running
from moorage_torchscript.script import Effects, effects_of, in_training, load_script, saved

log = logging.getLogger(__name__)


class ScriptModel(LoadedModel):
    """A version's TorchScript file.

    Instances on one device share its weights unless running changes them; `ENABLE_WEIGHT_SHARING` decides otherwise.
    """

    def __init__(self, torch: Any, context: LoadContext, content: bytes, options: Options) -> None:
        self._torch = torch
        self._context = context
        self._options = options
        self._lock = threading.Lock()
        module = self._loaded(content, torch.device("cpu"))
        if not module._has_method("forward"):
            raise ModelError(
                f"model '{context.model_name}': {context.model_file} has no method forward, which is the one served"
            )
        schema = module._get_method("forward").schema
        self._binding = bind(context.config, read_arguments(schema), read_result(schema))
        self._effects = effects_of(torch, module)
        share = options.weight_sharing
        self._share = not self._effects.keeps_state if share is None else share
        self._tell(module)
        self._master: Any = module
        self._master_taken = False
        self._shared: dict[str, Any] = {}
        self._content = content if self._needs_content() else None

    def signature(self) -> Signature:
        return self._binding.signature()

    def instance(self, placement: Placement) -> BatchInstance:
        torch, name = self._torch, self._context.model_name
        device = device_of(torch, placement, name)
        module = self._module(device) if placement.kind is not InstanceKind.KIND_MODEL else self._loaded(self._source(), None)
        wiring = wire(torch, self._context.config, self._binding, self._effects, device)
        return TorchInstance(name, call_of(module, self._binding), wiring, Running(torch, self._options, device))

    def close(self) -> None:
        self._shared.clear()
        self._master = self._content = None

    def _tell(self, module: Any) -> None:
        name = self._context.model_name
        if in_training(module):
            log.warning(
                "model '%s' was saved in training mode, so that dropout drops and batch norms use the batch: "
                "call model.eval() before it is scripted or traced if this is not meant",
                name,
            )
        for field, convention in zip(("input", "output"), self._binding.conventions, strict=True):
            names = self._binding.inputs if field == "input" else self._binding.outputs
            if convention is Convention.ORDER and len(names) > 1:
                log.warning(
                    "model '%s': the names of its %ss are neither %sNAME__INDEX, so their order in the configuration counts",
                    name,
                    field,
                    "names of arguments nor " if field == "input" else "",
                )

    def _needs_content(self) -> bool:
        """Whether the file itself is still needed: for copies of a module that changes, and for devices that it names."""
        by_file = any(placement.kind is InstanceKind.KIND_MODEL for placement in self._context.placements)
        return by_file or (self._effects.keeps_state and not self._share)

    def _module(self, device: Any) -> Any:
        """The device's module if it is shared, else a new one; the first on the CPU is the one that was loaded."""
        with self._lock:
            if device.type == "cpu" and (self._share or not self._master_taken):
                self._master_taken = True
                return self._master
            if not self._share:
                return self._loaded(self._source(), device)
            key = str(device)
            if key not in self._shared:
                self._shared[key] = self._loaded(self._source(), device)
            return self._shared[key]

    def _source(self) -> bytes:
        """The file as it was read, or as it can be written again."""
        return self._content if self._content is not None else saved(self._master)

    def _loaded(self, content: bytes, device: Any) -> Any:
        context = self._context
        try:
            return load_script(self._torch, content, device)
        except Exception as error:
            raise load_error(error, context.model_name, context.version, context.model_file) from error


def call_of(module: Any, binding: Binding) -> Call:
    """The forward method, which is given a value for each slot."""
    method = module._get_method("forward")
    if binding.gathered is Shape.TENSORS:
        return lambda values: method([value for value in values if value is not None])
    if binding.gathered is Shape.TABLE:
        names = tuple(binding.inputs)
        return lambda values: method({name: value for name, value in zip(names, values, strict=True) if value is not None})
    return lambda values: method(*values)


def wire(torch: Any, config: ModelConfig, binding: Binding, effects: Effects, device: Any) -> Wiring:
    """How requests are turned into the arguments of the forward method, and its result into outputs."""
    copy = effects.writes_inputs or effects.keeps_state
    optional = {item.name for item in config.input if item.optional}
    types = {item.name: item.data_type for item in config.input}
    feeds = [
        Feed(name, binding.inputs[name], _converter(torch, name, types, binding, device, copy=copy), name in optional)
        for name in input_names(config)
    ]
    takes = {item.name: Take(item.name, _picker(config.name, item.name, binding), model_shape(item)) for item in config.output}
    slots = [None] * len(binding.inputs) if binding.gathered else [argument.default for argument in binding.arguments]
    return Wiring(tuple(feeds), takes, tuple(slots), config.batches, copy_outputs=effects.keeps_state and effects.gives_state)


def model_shape(item: Any) -> tuple[int, ...]:
    """The dims of an output as the model gives it, with at most one open size."""
    dims: tuple[int, ...] = item.dims if item.reshape is None else item.reshape.shape
    return dims if dims.count(-1) < 2 else (-1,)


def _converter(
    torch: Any, name: str, types: dict[str, DataType], binding: Binding, device: Any, *, copy: bool
) -> Callable[[np.ndarray], Any]:
    argument = binding.argument(name)
    if argument is not None and argument.shape is Shape.TEXTS:
        return lambda array: texts(name, array)
    if argument is not None and argument.shape in SCALARS:
        return _scalar(name, argument)
    convert = to_tensor(torch, types.get(name, DataType.FP32), copy=copy)
    if device.type == "cpu":
        return convert
    return lambda array: convert(array).to(device)


def _scalar(name: str, argument: Argument) -> Callable[[np.ndarray], Any]:
    make = {Shape.INT: int, Shape.FLOAT: float, Shape.BOOL: bool, Shape.TEXT: str}[argument.shape]

    def convert(array: np.ndarray) -> Any:
        if array.size != 1:
            raise RequestError(f"input '{name}' is one {argument.text}, but it has {array.size} elements")
        return make(texts(name, array)[0] if make is str else array.item())

    return convert


def _picker(model: str, name: str, binding: Binding) -> Callable[[Any], Any]:
    """Finds an output in what the forward method returns."""
    position, result = binding.outputs[name], binding.result
    if result.shape is Shape.TABLE:
        return lambda table: _from_table(model, name, table)
    if result.shape in (Shape.TENSOR, Shape.TEXTS):
        return lambda value: value

    def pick(value: Any) -> Any:
        members: Sequence[Any] = value if isinstance(value, list | tuple) else (value,)
        if position < len(members):
            return members[position]
        raise ModelError(
            f"model '{model}': output '{name}' would be number {position}, counted from 0, but it returned {len(members)}"
        )

    return pick


def _from_table(model: str, name: str, table: dict[str, Any]) -> Any:
    """By key, or by number as in `OUTPUT__1`."""
    if name in table:
        return table[name]
    index = index_of(name)
    if index is not None and index < len(table):
        return list(table.values())[index]
    raise ModelError(f"model '{model}' returned no '{name}'; the keys of its result are {', '.join(table)}")
