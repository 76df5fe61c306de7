"""Makes the sessions of one model, and calls what is in them."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any, Protocol

import numpy as np
from attrs import evolve

from moorage.backend import LoadContext, Placement
from moorage.config.schema import InstanceKind
from moorage_tensorflow.devices import check_device, device_name
from moorage_tensorflow.faults import load_error
from moorage_tensorflow.graph_def import WITH_DEFAULT
from moorage_tensorflow.optimization import optimise
from moorage_tensorflow.options import init_ops, memory, threads
from moorage_tensorflow.reach import keeps_state
from moorage_tensorflow.runtime import Runtime
from moorage_tensorflow.tensors import Built

Call = Callable[..., Sequence[np.ndarray]]
_MOST_CALLS = 64
_CALLER_S_THREAD = -1


class Source(Protocol):
    """Files with a graph."""

    def build(self) -> Built:
        """Bring the graph into TensorFlow's default graph."""


class OpenSession:
    """A graph in a TensorFlow session. Safe for many threads."""

    def __init__(self, runtime: Runtime, session: Any, built: Built, *, own_thread: bool) -> None:
        self.endpoints = built.endpoints
        self.stateful = keeps_state(built.graph_def, [output.tensor for output in built.endpoints.outputs])
        """Whether a run may see what an earlier one did."""
        self._session = session
        self._new_options = runtime.config.CallableOptions
        self._own_thread = own_thread
        self._inputs = {one.spec.name: one.tensor for one in self.endpoints.inputs}
        self._outputs = {one.spec.name: one.tensor for one in self.endpoints.outputs}
        self._calls: dict[tuple[tuple[str, ...], tuple[str, ...]], Call] = {}
        self._lock = Lock()
        graph = session.graph
        self.defaults = frozenset(
            name for name, tensor in self._inputs.items() if graph.get_tensor_by_name(tensor).op.type == WITH_DEFAULT
        )
        """Inputs that a run can do without."""

    def call(self, inputs: Sequence[str], outputs: Sequence[str]) -> Call:
        """A function from arrays for these inputs to arrays of these outputs, in this order."""
        key = (tuple(inputs), tuple(outputs))
        found = self._calls.get(key)
        if found is None:
            with self._lock:
                found = self._calls.get(key) or self._made(*key)
                if len(self._calls) < _MOST_CALLS:
                    self._calls[key] = found
        return found

    def close(self) -> None:
        """Give back the session's memory and threads. No run may be under way."""
        self._calls.clear()
        graph = self._session.graph
        self._session.close()
        del self._session
        dismantle(graph)

    def _made(self, inputs: tuple[str, ...], outputs: tuple[str, ...]) -> Call:
        options = self._new_options()
        options.feed.extend(self._inputs[name] for name in inputs)
        options.fetch.extend(self._outputs[name] for name in outputs)
        if self._own_thread:
            options.run_options.inter_op_thread_pool = _CALLER_S_THREAD
        # TensorFlow's public way, `make_callable`, takes many times as long for each run.
        made: Call = self._session._make_callable_from_options(options)
        return made


class SessionMaker:
    """Knows all that the sessions of a model have in common: the files, the options."""

    def __init__(self, runtime: Runtime, context: LoadContext, read: Callable[[Path], Source]) -> None:
        """`read` reads a file or folder, of which there may be one for each kind of device."""
        self._runtime = runtime
        self._context = context
        self._read = cache(read)
        self._init_ops = init_ops(context)
        self._threads = threads(context)
        self._memory = memory(context)

    def make(self, placement: Placement) -> OpenSession:
        """A session with the model's graph on this device, ready to run."""
        context, path = self._context, self._context.file_for(placement)
        check_device(self._runtime.tf, context.model_name, placement)
        options = self._options(placement)
        try:
            return self._opened(self._read(path), options, placement)
        except Exception as error:
            raise load_error(error, context.model_name, context.version, path) from error

    def _opened(self, source: Source, options: Any, placement: Placement) -> OpenSession:
        graph = self._runtime.tf.Graph()
        try:
            with graph.as_default():
                with self._runtime.tf.device(device_name(placement)):
                    built = _apart(self._runtime.tf, source.build())
                session = self._runtime.v1.Session(graph=graph, config=options)
                return self._started(session, built)
        except BaseException:
            dismantle(graph)
            raise

    def _started(self, session: Any, built: Built) -> OpenSession:
        """The session, initialised and prepared for the outputs that most requests ask for: those of the configuration."""
        try:
            built.start(session)
            for operation in self._init_ops:
                session.run(operation)
            opened = OpenSession(self._runtime, session, built, own_thread=not self._threads.between)
            inputs, outputs = ([one.spec.name for one in side] for side in (built.endpoints.inputs, built.endpoints.outputs))
            opened.call(inputs, [one.name for one in self._context.config.output if one.name in outputs] or outputs)
        except BaseException:
            session.close()
            raise
        return opened

    def _options(self, placement: Placement) -> Any:
        """A `ConfigProto`."""
        options = self._runtime.v1.ConfigProto(
            intra_op_parallelism_threads=self._threads.inside,
            inter_op_parallelism_threads=self._threads.between or _CALLER_S_THREAD,
            use_per_session_threads=self._threads.own_pool,
            allow_soft_placement=self._memory.soft_placement,
        )
        options.experimental.disable_thread_spinning = True
        options.gpu_options.per_process_gpu_memory_fraction = self._memory.fraction
        options.gpu_options.allow_growth = not self._memory.fraction
        if placement.kind is InstanceKind.KIND_CPU:
            options.device_count["GPU"] = 0
        optimise(options, self._context.config, placement)
        return options


def dismantle(graph: Any) -> None:
    """Free a graph at once: it is full of circles, which the garbage collector may take long to come to."""
    importlib.import_module("tensorflow.python.framework.ops").dismantle_graph(graph)


def _apart(tf: Any, built: Built) -> Built:
    """The same with a copy of each output that is an input itself, which TensorFlow would refuse to take and give at once."""
    inputs = {one.tensor for one in built.endpoints.inputs}
    graph = tf.compat.v1.get_default_graph()
    outputs = tuple(
        evolve(one, tensor=tf.identity(graph.get_tensor_by_name(one.tensor)).name) if one.tensor in inputs else one
        for one in built.endpoints.outputs
    )
    return evolve(built, endpoints=evolve(built.endpoints, outputs=outputs))
