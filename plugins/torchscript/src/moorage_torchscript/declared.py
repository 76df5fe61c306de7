"""What a program of torch.export declares: its tensors, the batches it takes, whether running it changes something."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from attrs import frozen

from moorage.backend import TensorSpec
from moorage.errors import Unsupported
from moorage.types import DataType
from moorage_torchscript.dtypes import datatype_of
from moorage_torchscript.leaves import Leaf, Path, input_leaves, output_leaves, paths

_HARMLESS: Final = frozenset({"aten::detach_"})
"""Operators that are declared to write, but write nothing that anyone can see."""


@frozen
class Port:
    """A tensor that goes in or comes out. `shape` begins with the batch if there is one; -1 is any size."""

    leaf: Leaf
    datatype: DataType
    shape: tuple[int, ...]

    def spec(self, name: str = "") -> TensorSpec:
        """What the file declares, under another name if one is given."""
        return TensorSpec(name or self.leaf.name, self.datatype, self.shape)


@frozen
class Declared:
    """A program's signature.

    `constants` are the arguments as the program was exported with; tensors among them are None.
    """

    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    constants: tuple[Any, ...]
    largest_batch: int | None
    """The greatest first size that all inputs take, None if there is no limit."""
    mutable: bool
    """Running it changes its inputs or what it keeps."""


def declared(torch: Any, program: Any, model: str) -> Declared:
    """Read a program's signature. Raises Unsupported naming a tensor that no request can carry."""
    values = {node.name: node.meta.get("val") for node in program.graph.nodes}
    signature = program.graph_signature
    arguments = [spec.arg for spec in signature.input_specs if spec.kind.name == "USER_INPUT"]
    results = [values.get(spec.arg.name) for spec in signature.output_specs if spec.kind.name == "USER_OUTPUT"]
    fed = [number for number, argument in enumerate(arguments) if not hasattr(argument, "value")]
    given = [number for number, value in enumerate(results) if isinstance(value, torch.Tensor)]
    names = [arguments[number].name for number in fed]
    inputs = input_leaves(_tree(torch, program.call_spec.in_spec), fed, _forward_arguments(program), names)
    outputs = output_leaves(_tree(torch, program.call_spec.out_spec), given)
    into = [values[argument.name] if not hasattr(argument, "value") else None for argument in arguments]
    return Declared(
        tuple(_port(torch, leaf, into[leaf.position], model, "input") for leaf in inputs),
        tuple(_port(torch, leaf, results[leaf.position], model, "output") for leaf in outputs),
        tuple(getattr(argument, "value", None) for argument in arguments),
        _largest_batch(program, [into[leaf.position] for leaf in inputs]),
        is_mutable(program),
    )


def is_mutable(program: Any) -> bool:
    """Whether running a program changes its inputs or its buffers, as far as the operators say."""
    if any(spec.kind.name.endswith("_MUTATION") for spec in program.graph_signature.output_specs):
        return True
    return any(_writes(node) for node in _calls(program.graph_module))


def _calls(module: Any) -> Iterator[Any]:
    for part in module.modules():
        graph = getattr(part, "graph", None)
        yield from (node for node in (graph.nodes if graph is not None else ()) if node.op == "call_function")


def _writes(node: Any) -> bool:
    schema = getattr(node.target, "_schema", None)
    return schema is not None and schema.is_mutable and schema.name not in _HARMLESS


def _tree(torch: Any, specification: Any) -> tuple[Path, ...]:
    """Paths of the leaves; none for trees of classes of the model's own."""
    try:
        return paths(torch.utils._pytree.treespec_dumps(specification))
    except Exception:  # noqa: BLE001 (names by path are left out then)
        return ()


def _forward_arguments(program: Any) -> Sequence[str]:
    """The names of the forward method's arguments, as far as this version of PyTorch keeps them."""
    whole = next((entry for entry in program.module_call_graph if entry.fqn == ""), None)
    return getattr(getattr(whole, "signature", None), "forward_arg_names", None) or ()


def _port(torch: Any, leaf: Leaf, value: Any, model: str, role: str) -> Port:
    where = f"model '{model}': {role} '{leaf.name}'"
    if not isinstance(value, torch.Tensor):
        raise Unsupported(f"{where} is no tensor but {type(value).__name__}; export the model with tensors alone")
    datatype = datatype_of(torch, value.dtype)
    if datatype is None:
        raise Unsupported(f"{where} is {value.dtype}, which requests cannot carry; cast it in the model")
    return Port(leaf, datatype, tuple(size if isinstance(size, int) else -1 for size in value.shape))


def _largest_batch(program: Any, values: Sequence[Any]) -> int | None:
    limits = []
    for value in values:
        size = value.shape[0] if value.dim() else 1
        limit = program.range_constraints.get(getattr(getattr(size, "node", None), "expr", None))
        upper = getattr(limit, "upper", None)
        if upper is not None and upper.is_Integer:
            limits.append(int(upper))
    return min(limits, default=None)
