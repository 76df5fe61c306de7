"""Frozen graphs: which of their tensors are inputs and outputs, and how they get into a session."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from moorage.backend import LoadContext
from moorage.config.schema import InstanceKind, ModelConfig, SequenceBatching
from moorage.errors import ModelError, NotFound
from moorage_tensorflow.reach import reachable, writes
from moorage_tensorflow.runtime import Runtime
from moorage_tensorflow.tensors import Built, Endpoint, Endpoints, datatype, known, sizes

_PLACEHOLDERS = frozenset({"Placeholder", "PlaceholderV2"})
WITH_DEFAULT = "PlaceholderWithDefault"


class FrozenGraph:
    """A file with a `GraphDef`. It does not say what it takes and gives: the configuration chooses among its tensors."""

    def __init__(self, runtime: Runtime, context: LoadContext, path: Path) -> None:
        """Raises a MoorageError if the file holds no graph."""
        self.path = path
        self._runtime = runtime
        self._context = context
        self._clears_devices = all(place.kind is not InstanceKind.KIND_MODEL for place in context.placements)
        self._graph_def = self._read()

    def build(self) -> Built:
        """Bring the graph into TensorFlow's default graph. What is in it is constant: it starts with nothing."""
        graph_def = self._graph_def if self._graph_def is not None else self._read()
        self._graph_def = None
        self._runtime.tf.import_graph_def(graph_def, name="")
        endpoints = self._endpoints(self._runtime.v1.get_default_graph(), graph_def)
        return Built(endpoints, graph_def, lambda _: None)

    def _read(self) -> Any:
        where = f"model '{self._context.model_name}' version {self._context.version}"
        if not self.path.is_file():
            raise NotFound(f"{where}: there is no file {self.path}; put a frozen graph there")
        content = self.path.read_bytes()
        graph_def = self._runtime.v1.GraphDef()
        try:
            graph_def.ParseFromString(content)
        except Exception as error:
            raise ModelError(f"{where}: {self.path} is no GraphDef ({error}); {self._advice(content)}") from error
        if not graph_def.node:
            raise ModelError(f"{where}: {self.path} holds no graph: it has no node; {self._advice(content)}")
        if self._clears_devices:
            _clear_devices(graph_def.node)
        return graph_def

    def _advice(self, content: bytes) -> str:
        if content.lstrip().startswith((b"node {", b"node{", b"versions", b"library")):
            return "it is in text form: write it with tf.io.write_graph(..., as_text=False)"
        if self._is_saved_model(content):
            return "it is a SavedModel: put its folder into the version's as model.savedmodel"
        return "write a frozen graph in binary form there, or export a SavedModel as model.savedmodel"

    def _is_saved_model(self, content: bytes) -> bool:
        saved = self._runtime.saved_model.SavedModel()
        try:
            saved.ParseFromString(content)
        except Exception:  # noqa: BLE001  it is not one
            return False
        return any(graph.graph_def.node for graph in saved.meta_graphs)

    def _endpoints(self, graph: Any, graph_def: Any) -> Endpoints:
        """The tensors that the configuration names and that are there; without any outputs among them, the graph's ends.

        Placeholders that the outputs need are inputs, whether they are named or not.
        """
        config = self._context.config
        outputs = [self._endpoint("output", name, graph) for name in _present((one.name for one in config.output), graph)]
        if len(outputs) < len(config.output) or not outputs:
            outputs += [self._endpoint("output", name, graph) for name in _ends(graph, {o.spec.name for o in outputs})]
        needed = {node.name for node in reachable(graph_def, [output.tensor for output in outputs]) if node.op in _PLACEHOLDERS}
        named = {name for name in _named_inputs(config) if _is_placeholder(name, graph)}
        inputs = [self._endpoint("input", name, graph) for name in sorted(needed | named)]
        return Endpoints(tuple(inputs), tuple(outputs))

    def _endpoint(self, role: str, name: str, graph: Any) -> Endpoint:
        tensor = graph.get_tensor_by_name(_tensor_name(name))
        kind = datatype(tensor.dtype, self._context.model_name, role, name)
        shape = sizes(tensor.shape)
        if shape and self._context.config.batches:
            shape = (-1, *shape[1:])
        return Endpoint.of(name, kind, shape, tensor.name)


def _tensor_name(name: str) -> str:
    """A node's first output, unless the name says which."""
    return name if ":" in name else f"{name}:0"


def _present(names: Iterable[str], graph: Any) -> list[str]:
    return [name for name in names if _tensor(name, graph) is not None]


def _tensor(name: str, graph: Any) -> Any:
    try:
        return graph.get_tensor_by_name(_tensor_name(name))
    except (KeyError, ValueError):
        return None


def _is_placeholder(name: str, graph: Any) -> bool:
    tensor = _tensor(name, graph)
    return tensor is not None and tensor.op.type in {*_PLACEHOLDERS, WITH_DEFAULT}


def _named_inputs(config: ModelConfig) -> Iterator[str]:
    """Inputs that the configuration lists, and those that the server feeds by itself."""
    yield from (one.name for one in config.input)
    for batch_input in config.batch_input:
        yield from batch_input.target_name
    if isinstance(config.scheduling, SequenceBatching):
        yield from (control.name for control in config.scheduling.control_input)
        yield from (state.input_name for state in config.scheduling.state)


def _ends(graph: Any, known_already: set[str]) -> list[str]:
    """Tensors that no other node takes, of types that requests can carry; what sets variables is not meant as an output."""
    ends = [
        tensor
        for operation in graph.get_operations()
        if operation.type not in {*_PLACEHOLDERS, WITH_DEFAULT} and not writes(operation.type)
        for tensor in operation.outputs
        if not tensor.consumers() and known(tensor.dtype) is not None
    ]
    names = (tensor.op.name if tensor.value_index == 0 else tensor.name for tensor in ends)
    return [name for name in names if name not in known_already]


def _clear_devices(nodes: Iterable[Any]) -> None:
    """Leave the device to the instance group, but for nodes that are bound to the CPU."""
    for node in nodes:
        if node.device and "cpu" not in node.device.lower():
            node.device = ""
