"""A loaded program of torch.export and its instances."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from moorage.backend import BatchInstance, LoadContext, LoadedModel, Placement, Signature
from moorage.config.schema import InstanceKind, ModelConfig
from moorage.errors import ConfigError, Fault
from moorage_torchscript.binding import input_names, output_names
from moorage_torchscript.declared import Declared, Port, declared
from moorage_torchscript.devices import device_of
from moorage_torchscript.dtypes import to_tensor
from moorage_torchscript.exported import call_of, is_on_cpu, load_program, move, saved
from moorage_torchscript.faults import load_error
from moorage_torchscript.instance import Call, Feed, Take, TorchInstance, Wiring
from moorage_torchscript.leaves import choose
from moorage_torchscript.options import Options
from moorage_torchscript.running import Running


class ExportedModel(LoadedModel):
    """A version's `model.pt2` out of `torch.export.save`.

    Instances on one device share its weights unless running changes them; `ENABLE_WEIGHT_SHARING` decides otherwise.
    """

    def __init__(self, torch: Any, context: LoadContext, content: bytes, options: Options) -> None:
        self._torch = torch
        self._context = context
        self._options = options
        self._lock = threading.Lock()
        program = self._loaded(content)
        self._declared = declared(torch, program, context.model_name)
        _check_batch(context.config, self._declared)
        self._inputs, input_faults = _ports(input_names(context.config), self._declared.inputs, "input")
        self._outputs, output_faults = _ports(output_names(context.config), self._declared.outputs, "output")
        if faults := [*input_faults, *output_faults]:
            raise ConfigError(faults, context.model_name)
        self._own = options.weight_sharing is False or (self._declared.mutable and not options.weight_sharing)
        elsewhere = any(placement.kind is InstanceKind.KIND_GPU for placement in context.placements)
        self._content = content if self._own or elsewhere else None
        self._program: Any = program
        self._calls: dict[str, Call] = {}

    def signature(self) -> Signature:
        return Signature(
            tuple(port.spec(name) for name, port in self._inputs.items()),
            tuple(port.spec(name) for name, port in self._outputs.items()),
        )

    def instance(self, placement: Placement) -> BatchInstance:
        torch, name = self._torch, self._context.model_name
        device = device_of(torch, placement, name)
        call = self._call(device)
        return TorchInstance(name, call, self._wiring(device), Running(torch, self._options, device))

    def close(self) -> None:
        self._calls.clear()
        self._program = self._content = None

    def _call(self, device: Any) -> Call:
        """The device's program, or one of its own for each instance."""
        with self._lock:
            if self._own:
                return call_of(self._torch, self._program_for(device))
            key = str(device)
            if key not in self._calls:
                self._calls[key] = call_of(self._torch, self._program_for(device))
            return self._calls[key]

    def _program_for(self, device: Any) -> Any:
        on_cpu = device.type == "cpu" and is_on_cpu(self._program)
        if on_cpu and not self._own:
            return self._program
        content = self._content if self._content is not None else saved(self._torch, self._program)
        program = self._loaded(content)
        return program if on_cpu else move(program, device)

    def _wiring(self, device: Any) -> Wiring:
        found = self._declared
        optional = {item.name for item in self._context.config.input if item.optional}
        feeds = [Feed(name, port.leaf.position, self._converter(port, device)) for name, port in self._inputs.items()]
        takes = {name: Take(name, _picker(port.leaf.position)) for name, port in self._outputs.items()}
        if optional:
            faults = [Fault(f"'{name}' is optional, but the program needs it", field="input") for name in sorted(optional)]
            raise ConfigError(faults, self._context.model_name)
        return Wiring(tuple(feeds), takes, found.constants, self._batches(), copy_outputs=found.mutable)

    def _batches(self) -> bool:
        return self._context.config.batches

    def _converter(self, port: Port, device: Any) -> Callable[[Any], Any]:
        convert = to_tensor(self._torch, port.datatype, copy=self._declared.mutable)
        if device.type == "cpu":
            return convert
        return lambda array: convert(array).to(device)

    def _loaded(self, content: bytes) -> Any:
        context = self._context
        try:
            return load_program(self._torch, content, context.model_name)
        except Exception as error:
            raise load_error(error, context.model_name, context.version, context.model_file) from error


def _picker(position: int) -> Callable[[Sequence[Any]], Any]:
    return lambda results: results[position]


def _ports(names: Sequence[str], ports: Sequence[Port], field: str) -> tuple[dict[str, Port], list[Fault]]:
    """The program's tensors under the names of the configuration; those that it leaves out under their own."""
    chosen, faults = choose(names, [port.leaf for port in ports], field)
    given = {leaf.position: name for name, leaf in chosen.items()}
    return {given.get(port.leaf.position, port.leaf.name): port for port in ports}, faults


def _check_batch(config: ModelConfig, found: Declared) -> None:
    if found.largest_batch is not None and config.max_batch_size > found.largest_batch:
        message = f"{config.max_batch_size} is more than the program was exported for (a first dimension of up to "
        message += f"{found.largest_batch})"
        advice = f"write max_batch_size: {found.largest_batch}, or export with a wider torch.export.Dim"
        raise ConfigError([Fault(message, field="max_batch_size", advice=advice)], config.name)
