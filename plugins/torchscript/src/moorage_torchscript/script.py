"""TorchScript files: loading them, and what running a module does to its inputs and to itself."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

from attrs import frozen

from moorage_torchscript.faults import missing_library

_OPAQUE = frozenset({"prim::fork", "prim::CallMethod", "prim::CallFunction", "prim::Closure", "prim::rpc_async"})
"""Calls that cannot be looked into: what they do is not known."""
_VALUES = frozenset(
    {"IntType", "FloatType", "BoolType", "StringType", "NoneType", "NumberType", "ComplexType", "DeviceObjType", "ClassType"}
)


@frozen
class Effects:
    """What a run may do. True where it is not known."""

    writes_inputs: bool = True
    keeps_state: bool = True
    """The module changes while it runs."""
    gives_state: bool = True
    """An output may share the memory of what the module keeps."""


def load_script(torch: Any, content: bytes, device: Any) -> Any:
    """The module of a TorchScript file, on this device (None: where it was when it was saved).

    Nothing is unpickled by Python: TorchScript has its own reader. Raises whatever PyTorch raises.
    """
    try:
        return _load(torch, content, device)
    except RuntimeError as error:
        if not _brought_in(missing_library(error)):
            raise
    return _load(torch, content, device)


def saved(module: Any) -> bytes:
    """The file of a module."""
    content: bytes = module.save_to_buffer()
    return content


def _load(torch: Any, content: bytes, device: Any) -> Any:
    """As `torch.jit.load` does it, without its advice to stop using TorchScript."""
    return torch._C.import_ir_module_from_buffer(torch._C.CompilationUnit(), content, device, {}, False)


def _brought_in(library: str) -> bool:
    """Import the package that registers the operators a file needs."""
    if not library:
        return False
    try:
        importlib.import_module(library)
    except ImportError:
        return False
    return True


def effects_of(torch: Any, module: Any) -> Effects:
    """Look through the code of the forward method, with all that it calls."""
    graph = module._get_method("forward").graph.copy()
    torch._C._jit_pass_inline(graph)
    _fold_training(torch, graph, module)
    nodes = list(_nodes(graph))
    if any(node.kind() in _OPAQUE for node in nodes):
        return Effects()
    aliases = graph.alias_db()
    kept = [node.output() for node in nodes if node.kind() == "prim::GetAttr"]
    kept = [value for value in kept if value.type().kind() not in _VALUES]
    return Effects(
        writes_inputs=any(aliases.has_writers(value) for value in list(graph.inputs())[1:]),
        keeps_state=any(node.kind() == "prim::SetAttr" for node in nodes) or any(map(aliases.has_writers, kept)),
        gives_state=any(aliases.may_contain_alias(result, value) for result in graph.outputs() for value in kept),
    )


def in_training(module: Any) -> bool:
    """Whether the module was saved in training mode: dropout then drops, and batch norms take the statistics of the batch."""
    return bool(module.hasattr("training") and module.getattr("training"))


def _fold_training(torch: Any, graph: Any, module: Any) -> None:
    """Drop the branches that the modules' modes rule out: in evaluation, those that write running statistics."""
    flags = [node for node in _nodes(graph) if node.kind() == "prim::GetAttr" and node.s("name") == "training"]
    if not flags or any(node.kind() == "prim::SetAttr" for node in _nodes(graph)):
        return
    with graph.insert_point_guard(next(iter(graph.nodes()))):
        words = {mode: graph.insertConstant(mode) for mode in (False, True)}
    for node in flags:
        node.output().replaceAllUsesWith(words[bool(_attribute(node, module))])
    torch._C._jit_pass_constant_propagation(graph)
    torch._C._jit_pass_dce(graph)


def _attribute(node: Any, module: Any) -> Any:
    """The value of a GetAttr now."""
    owner = node.input().node()
    holder = _attribute(owner, module) if owner.kind() == "prim::GetAttr" else module
    holder = getattr(holder, "_c", holder)
    return holder.getattr(node.s("name"))


def _nodes(block: Any) -> Iterator[Any]:
    for node in block.nodes():
        yield node
        for inner in node.blocks():
            yield from _nodes(inner)
