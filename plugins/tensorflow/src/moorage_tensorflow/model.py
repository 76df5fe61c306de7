"""A loaded TensorFlow model and its instances."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from threading import Lock

import numpy as np

from moorage.backend import BatchInstance, LoadContext, LoadedModel, Placement, Signature
from moorage.config.schema import InstanceKind, SequenceBatching
from moorage.errors import RequestError
from moorage_tensorflow.faults import run_error
from moorage_tensorflow.options import share_count
from moorage_tensorflow.sessions import OpenSession, SessionMaker
from moorage_tensorflow.tensors import Scalars, ShapeCheck

_Device = tuple[InstanceKind, int]


class TensorFlowModel(LoadedModel):
    """A version's files. Instances on one device share a session, unless runs leave traces in it or a setting says how many."""

    def __init__(self, context: LoadContext, maker: SessionMaker) -> None:
        self._model = context.model_name
        self._maker = maker
        first = context.placements[0] if context.placements else Placement(context.model_name, InstanceKind.KIND_CPU)
        most = share_count(context)
        session = maker.make(first)
        endpoints = session.endpoints
        self._signature = Signature(tuple(one.spec for one in endpoints.inputs), tuple(one.spec for one in endpoints.outputs))
        alone = session.stateful or isinstance(context.config.scheduling, SequenceBatching)
        self._most = most if most is not None else (1 if alone else None)
        self._users: dict[OpenSession, int] = {session: 0}
        self._device: dict[OpenSession, _Device] = {session: _device(first)}
        self._lock = Lock()

    def signature(self) -> Signature:
        return self._signature

    def instance(self, placement: Placement) -> BatchInstance:
        return TensorFlowInstance(self._model, self._take(placement), self)

    def leave(self, session: OpenSession) -> None:
        """An instance does without its session from now on; the last one closes it."""
        with self._lock:
            self._users[session] -= 1
            if self._users[session]:
                return
            del self._users[session], self._device[session]
        session.close()

    def close(self) -> None:
        for session in list(self._users):
            session.close()
        self._users.clear()

    def _take(self, placement: Placement) -> OpenSession:
        """A session on the device that has room for one more instance."""
        device = _device(placement)
        with self._lock:
            for session, users in self._users.items():
                if self._device[session] == device and (self._most is None or users < self._most):
                    self._users[session] += 1
                    return session
        session = self._maker.make(placement)
        with self._lock:
            self._users[session] = 1
            self._device[session] = device
        return session


class TensorFlowInstance(BatchInstance):
    """Arrays in, arrays out: TensorFlow takes and gives numbers, `bytes` and BF16 as they are."""

    def __init__(self, model: str, session: OpenSession, owner: TensorFlowModel) -> None:
        specs = [one.spec for one in session.endpoints.inputs]
        self._scalars = Scalars(session.endpoints)
        self._model = model
        self._session = session
        self._owner = owner
        self._inputs = tuple(spec.name for spec in specs)
        self._check = ShapeCheck(model, specs)

    def run(self, inputs: Mapping[str, np.ndarray], outputs: Sequence[str]) -> Mapping[str, np.ndarray]:
        names = self._inputs if len(inputs) == len(self._inputs) else self._given(inputs)
        arrays = [inputs[name] for name in names]
        self._check(names, arrays)
        if self._scalars.inputs:
            arrays = self._scalars.given(names, arrays)
        try:
            results = self._session.call(names, outputs)(*arrays)
        except Exception as error:
            raise run_error(error, self._model) from error
        if self._scalars.outputs:
            results = self._scalars.taken(outputs, results)
        return dict(zip(outputs, results, strict=True))

    def close(self) -> None:
        self._owner.leave(self._session)

    def _given(self, inputs: Mapping[str, np.ndarray]) -> tuple[str, ...]:
        """The inputs of a run that leaves some to their defaults in the graph."""
        missing = [name for name in self._inputs if name not in inputs and name not in self._session.defaults]
        if missing:
            raise RequestError(f"model '{self._model}': input '{missing[0]}' is missing, and the graph has no default for it")
        return tuple(name for name in self._inputs if name in inputs)


def _device(placement: Placement) -> _Device:
    return placement.kind, placement.device_id
