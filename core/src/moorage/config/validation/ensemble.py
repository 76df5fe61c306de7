"""Checks of ensembles that need no other model: the steps, and how their tensors flow."""

from __future__ import annotations

from collections.abc import Iterator

from moorage.config.parsed import ParsedConfig, item_path
from moorage.config.platforms import ENSEMBLE
from moorage.config.schema import EnsembleStep, Ensembling, ModelConfig
from moorage.errors import Fault

_PATH = "ensemble_scheduling"


def ensemble_faults(parsed: ParsedConfig) -> Iterator[Fault]:
    """Faults of `ensemble_scheduling`, and of what cannot stand beside it."""
    config = parsed.config
    ensembling = config.scheduling
    if not isinstance(ensembling, Ensembling):
        if config.platform == ENSEMBLE:
            message = f"the ensemble '{config.name}' has no steps"
            yield parsed.fault("platform", message, "write ensemble_scheduling { step [ ... ] }")
        return
    yield from _surrounding_faults(parsed)
    if not ensembling.step:
        yield parsed.fault(_PATH, f"the ensemble '{config.name}' has no steps", "write ensemble_scheduling { step [ ... ] }")
    for index, step in enumerate(ensembling.step):
        yield from _step_faults(parsed, f"{_PATH}.step[{index}]", index, step)
    yield from _flow_faults(parsed, ensembling)


def _surrounding_faults(parsed: ParsedConfig) -> Iterator[Fault]:
    config = parsed.config
    if config.platform != ENSEMBLE:
        message = f"model '{config.name}' has ensemble steps, but its platform is '{config.platform}'"
        yield parsed.fault("platform" if config.platform else _PATH, message, f'write platform: "{ENSEMBLE}"')
    for name in ("instance_group", "optimization", "model_warmup"):
        if getattr(config, name):
            message = f"the ensemble '{config.name}' has {name}, which only its steps can have"
            yield parsed.fault(name, message, f"remove {name}")


def _step_faults(parsed: ParsedConfig, path: str, index: int, step: EnsembleStep) -> Iterator[Fault]:
    owner = f"step {index} of the ensemble '{parsed.config.name}'"
    if not step.model_name:
        yield parsed.fault(f"{path}.model_name", f"{owner} names no model", 'write model_name: "..."')
    elif not is_model_name(step.model_name):
        message = f"{owner} names the model '{step.model_name}', which is a path"
        yield parsed.fault(f"{path}.model_name", message, "write the name of a model of the repository")
    elif step.model_name == parsed.config.name and not step.model_namespace:
        yield parsed.fault(f"{path}.model_name", f"{owner} is the ensemble itself", "write the name of another model")
    for name in ("input_map", "output_map"):
        if not getattr(step, name):
            yield parsed.fault(f"{path}.{name}", f"{owner} has no {name}", f'write {name} {{ key: "..." value: "..." }}')


def is_model_name(name: str) -> bool:
    """Whether a name can be that of a model's folder: one part of a path, not a way out of the repository."""
    return name not in ("", ".", "..") and not any(mark in name for mark in "/\\\0")


def _flow_faults(parsed: ParsedConfig, ensembling: Ensembling) -> Iterator[Fault]:
    """Every tensor must be written once, be reached from the ensemble's inputs, and be used."""
    config = parsed.config
    written: dict[str, str] = {}
    read: dict[str, str] = {}
    for index, step in enumerate(ensembling.step):
        path = f"{_PATH}.step[{index}]"
        for key, tensor in step.input_map.items():
            read.setdefault(tensor, item_path(f"{path}.input_map", key))
        for key, tensor in step.output_map.items():
            where = item_path(f"{path}.output_map", key)
            if tensor in written:
                message = f"the tensor '{tensor}' of the ensemble '{config.name}' is written twice"
                yield parsed.fault(where, message, "write another name for one of them")
            written.setdefault(tensor, where)
    yield from _end_faults(parsed, written, read)
    yield from _middle_faults(parsed, ensembling, written, read)


def _end_faults(parsed: ParsedConfig, written: dict[str, str], read: dict[str, str]) -> Iterator[Fault]:
    config = parsed.config
    for index, one in enumerate(config.input):
        if one.name not in read and one.name not in written:
            message = f"input '{one.name}' of the ensemble '{config.name}' is not used by any step"
            yield parsed.fault(f"input[{index}].name", message, "remove it, or name it in an input_map")
    for index, output in enumerate(config.output):
        if output.name not in read and output.name not in written:
            message = f"output '{output.name}' of the ensemble '{config.name}' is not written by any step"
            yield parsed.fault(f"output[{index}].name", message, "remove it, or name it in an output_map")


def _middle_faults(
    parsed: ParsedConfig, ensembling: Ensembling, written: dict[str, str], read: dict[str, str]
) -> Iterator[Fault]:
    config = parsed.config
    ready = _reachable(config, ensembling)
    outputs = {one.name for one in config.output}
    places = {**written, **read}
    lost = [tensor for tensor in places if tensor not in ready]
    unwritten = [tensor for tensor in lost if tensor not in written]
    for tensor, where in places.items():
        if tensor in (unwritten or lost):
            message = f"the tensor '{tensor}' of the ensemble '{config.name}' never gets a value"
            advice = "write it in the output_map of a step whose inputs are there, or name it as an input"
            yield parsed.fault(where, message, advice)
        elif tensor in ready and tensor not in read and tensor not in outputs:
            message = f"the tensor '{tensor}' of the ensemble '{config.name}' is not used"
            yield parsed.fault(where, message, "remove it, read it in a step, or name it as an output")


def _reachable(config: ModelConfig, ensembling: Ensembling) -> set[str]:
    """The tensors that get a value when the inputs are given."""
    ready = {one.name for one in config.input}
    waiting = list(ensembling.step)
    while True:
        runnable = [step for step in waiting if ready.issuperset(step.input_map.values())]
        if not runnable:
            return ready
        for step in runnable:
            ready.update(step.output_map.values())
        waiting = [step for step in waiting if step not in runnable]
