"""How the tensors of an ensemble flow: worked out once, when it is loaded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from attrs import field, frozen

from moorage.config.schema import EnsembleStep, Ensembling, ModelConfig, ModelInput, ModelOutput
from moorage.errors import InvalidArgument
from moorage.types import DataType

Scope = tuple[int, ...]
"""The decoupled steps that a tensor comes through. It has a value for each chain of their responses, one if there are none."""


@frozen
class Slot:
    """A tensor as one model has it: `dims` without the batch dimension."""

    datatype: DataType
    dims: tuple[int, ...]
    batches: bool

    @property
    def shape(self) -> tuple[int, ...]:
        """With the batch dimension, -1."""
        return (-1, *self.dims) if self.batches else self.dims

    @classmethod
    def of(cls, item: ModelInput | ModelOutput, config: ModelConfig) -> Slot:
        return cls(item.data_type, item.dims, config.batches and not item.is_shape_tensor)


@frozen(eq=False)
class Step:
    """One model of an ensemble. `reads` and `writes` map its inputs and outputs to tensors of the ensemble."""

    index: int
    model: str
    version: int
    reads: Mapping[str, str]
    writes: Mapping[str, str]
    inputs: Mapping[str, Slot]
    decoupled: bool = False
    scope: Scope = ()
    """In which it runs: once for each response of the decoupled steps before it."""


@frozen(eq=False)
class Plan:
    """The steps, and for each output of the ensemble the steps that it needs and the scope that it comes from."""

    steps: tuple[Step, ...]
    outputs: Mapping[str, Slot]
    needed: Mapping[str, frozenset[int]] = field(factory=dict)
    scopes: Mapping[str, Scope] = field(factory=dict)

    @property
    def decoupled(self) -> bool:
        """Whether a request can have any number of responses."""
        return any(step.decoupled for step in self.steps)


def compiled(config: ModelConfig, address: Mapping[int, str], parts: Mapping[int, ModelConfig]) -> Plan:
    """The plan of an ensemble. `address` and `parts` give the name and the configuration of each step's model.

    Raises InvalidArgument, naming ensemble, step and tensor, if they do not fit together.
    """
    scheduling = config.scheduling
    written = scheduling.step if isinstance(scheduling, Ensembling) else ()
    _check(config, written, parts)
    writer = {tensor: index for index, step in enumerate(written) for tensor in step.output_map.values()}
    scopes: dict[str, Scope] = {item.name: () for item in config.input}
    needed: dict[str, frozenset[int]] = {item.name: frozenset() for item in config.input}
    steps: list[Step] = []
    waiting = dict(enumerate(written))
    while waiting:
        index = next(i for i, step in waiting.items() if all(tensor in scopes for tensor in step.input_map.values()))
        step, part = waiting.pop(index), parts[index]
        where = f"ensemble '{config.name}': step {index} (model '{step.model_name}')"
        scope = joined(where, [scopes[tensor] for tensor in step.input_map.values()])
        before = frozenset[int]().union(*(needed[tensor] for tensor in step.input_map.values()))
        for tensor in step.output_map.values():
            scopes[tensor] = (*scope, index) if part.decoupled else scope
            needed[tensor] = before | {writer[tensor]}
        inputs = {item.name: Slot.of(item, part) for item in part.input}
        version, reads, writes = step.model_version, step.input_map, step.output_map
        steps.append(Step(index, address[index], version, reads, writes, inputs, part.decoupled, scope))
    names = [item.name for item in config.output]
    joined(f"ensemble '{config.name}': its outputs", [scopes[name] for name in names])
    return Plan(tuple(steps), {item.name: Slot.of(item, config) for item in config.output}, needed, scopes)


def joined(where: str, scopes: Iterable[Scope]) -> Scope:
    """The scope in which tensors of several scopes are all there. Raises InvalidArgument if there is none."""
    ordered = sorted(scopes, key=len)
    deepest = ordered[-1] if ordered else ()
    if any(deepest[: len(scope)] != scope for scope in ordered):
        raise InvalidArgument(
            f"{where} would join the responses of different decoupled models, of which nobody knows how many there are; "
            "join them in one model"
        )
    return deepest


def _check(config: ModelConfig, steps: Sequence[EnsembleStep], parts: Mapping[int, ModelConfig]) -> None:
    """Names, data types, shapes and batch sizes of all steps and of the ensemble itself."""
    owner = f"ensemble '{config.name}'"
    known = {item.name: (owner, Slot.of(item, config)) for item in config.input}
    known |= {item.name: (owner, Slot.of(item, config)) for item in config.output}
    for index, step in enumerate(steps):
        part = parts[index]
        where = f"ensemble '{config.name}': step {index} (model '{step.model_name}')"
        if part.batches and part.max_batch_size < config.max_batch_size:
            raise InvalidArgument(
                f"{where} takes batches of at most {part.max_batch_size}, the ensemble of {config.max_batch_size}: "
                f"write max_batch_size: {part.max_batch_size} or less for the ensemble"
            )
        _check_names(where, step, part)
        given = [(step.input_map[item.name], Slot.of(item, part)) for item in part.input if item.name in step.input_map]
        made = [(step.output_map[item.name], Slot.of(item, part)) for item in part.output if item.name in step.output_map]
        for tensor, slot in (*given, *made):
            _agree(where, tensor, f"model '{step.model_name}'", slot, known)


def _check_names(where: str, step: EnsembleStep, part: ModelConfig) -> None:
    for kind, mapped, items in (("input", step.input_map, part.input), ("output", step.output_map, part.output)):
        unknown = sorted(mapped.keys() - {item.name for item in items})
        if unknown:
            raise InvalidArgument(f"{where}: the model has no {kind} '{unknown[0]}', which the {kind}_map names")
    missing = [item.name for item in part.input if not item.optional and item.name not in step.input_map]
    if missing:
        raise InvalidArgument(f"{where}: input '{missing[0]}' of the model is not in the input_map")


def _agree(where: str, tensor: str, owner: str, slot: Slot, known: dict[str, tuple[str, Slot]]) -> None:
    first, other = known.setdefault(tensor, (owner, slot))
    if slot.datatype is not other.datatype:
        raise InvalidArgument(
            f"{where}: tensor '{tensor}' is {slot.datatype.wire} for {owner} and {other.datatype.wire} for {first}"
        )
    if not _alike(slot.dims, other.dims) and not _alike(slot.shape, other.shape):
        raise InvalidArgument(
            f"{where}: tensor '{tensor}' has shape {list(slot.shape)} for {owner} and {list(other.shape)} for {first}"
        )


def _alike(one: Sequence[int], other: Sequence[int]) -> bool:
    return len(one) == len(other) and all(-1 in (a, b) or a == b for a, b in zip(one, other, strict=True))
