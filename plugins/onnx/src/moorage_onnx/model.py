"""A loaded ONNX model and its instances."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from moorage.backend import BatchInstance, LoadContext, LoadedModel, Placement, Settings, Signature
from moorage.config.schema import InstanceKind
from moorage.errors import Unsupported
from moorage.types import DataType
from moorage_onnx.faults import run_error
from moorage_onnx.sessions import SessionMaker
from moorage_onnx.tensors import ONNX_BFLOAT16, bf16_bits, bf16_output, bytes_output, text_input

SHARE = "share_session"
"""Parameter: whether instances on one device use one session. Default: yes on the CPU, no on a GPU."""


class OnnxModel(LoadedModel):
    """A version's ONNX file. A session is safe for many threads, so that instances on the CPU use one unless told otherwise."""

    def __init__(self, context: LoadContext, maker: SessionMaker) -> None:
        self._model = context.model_name
        self._maker = maker
        self._settings = Settings.of(context)
        first = context.placements[0] if context.placements else Placement(context.model_name, InstanceKind.KIND_CPU)
        session = maker.make(first)
        self._signature = maker.signature(session)
        if _named(self._signature, DataType.BF16):
            self._refuse_string_inputs()
        self._shared = {_device(first): session}
        self._unused = {_device(first)}

    def signature(self) -> Signature:
        return self._signature

    def instance(self, placement: Placement) -> BatchInstance:
        session = self._session(placement)
        strings, bf16 = _named(self._signature, DataType.BYTES), _named(self._signature, DataType.BF16)
        if bf16:
            return ValueInstance(self._model, session, self._maker, strings, bf16)
        if strings:
            return TextInstance(self._model, session, self._maker, strings)
        return OnnxInstance(self._model, session, self._maker)

    def close(self) -> None:
        self._shared.clear()

    def _refuse_string_inputs(self) -> None:
        for spec in self._signature.inputs:
            if spec.datatype is DataType.BYTES:
                raise Unsupported(
                    f"model '{self._model}': input '{spec.name}' is a string, which ONNX Runtime for Python cannot take "
                    "together with BF16 tensors; cast the BF16 tensors to FP32 inside the model"
                )

    def _session(self, placement: Placement) -> Any:
        """The device's session: its first instance takes the one that loading made, if there is one."""
        device = _device(placement)
        share = self._settings.flag(SHARE, placement.kind is not InstanceKind.KIND_GPU)
        if device in self._shared and (share or device in self._unused):
            self._unused.discard(device)
            return self._shared[device]
        session = self._maker.make(placement)
        if share:
            self._shared[device] = session
        return session


class OnnxInstance(BatchInstance):
    """Numbers in, numbers out: what ONNX Runtime takes as it is.

    It keeps the maker of its session, which holds the memory of the weights that the session reads.
    """

    def __init__(self, model: str, session: Any, maker: SessionMaker) -> None:
        self._model = model
        self._run = session.run
        self._run_options = maker.run_options
        self._maker: SessionMaker | None = maker

    def run(self, inputs: Mapping[str, np.ndarray], outputs: Sequence[str]) -> Mapping[str, np.ndarray]:
        try:
            return dict(zip(outputs, self._run(outputs, inputs, self._run_options), strict=True))
        except Exception as error:
            raise run_error(error, self._model) from error

    def close(self) -> None:
        del self._run
        self._maker = None


class TextInstance(OnnxInstance):
    """Some tensors are strings, which ONNX Runtime wants as `str`."""

    def __init__(self, model: str, session: Any, maker: SessionMaker, strings: frozenset[str]) -> None:
        super().__init__(model, session, maker)
        self._strings = strings

    def run(self, inputs: Mapping[str, np.ndarray], outputs: Sequence[str]) -> Mapping[str, np.ndarray]:
        strings = self._strings
        texts = {name: text_input(self._model, name, array) if name in strings else array for name, array in inputs.items()}
        results = super().run(texts, outputs)
        return {name: bytes_output(array) if name in strings else array for name, array in results.items()}


class ValueInstance(BatchInstance):
    """Some tensors are BF16, for which ONNX Runtime has no arrays: all go in and out as its own values."""

    def __init__(self, model: str, session: Any, maker: SessionMaker, strings: frozenset[str], bf16: frozenset[str]) -> None:
        self._model = model
        self._run = session.run_with_ort_values
        self._run_options = maker.run_options
        self._maker: SessionMaker | None = maker
        self._to_value = maker.runtime.OrtValue.ortvalue_from_numpy
        self._to_typed_value = maker.runtime.OrtValue.ortvalue_from_numpy_with_onnx_type
        self._strings = strings
        self._bf16 = bf16

    def run(self, inputs: Mapping[str, np.ndarray], outputs: Sequence[str]) -> Mapping[str, np.ndarray]:
        try:
            values = {name: self._value(name, array) for name, array in inputs.items()}
            results = self._run(outputs, values, self._run_options)
            return {name: self._array(name, value) for name, value in zip(outputs, results, strict=True)}
        except Exception as error:
            raise run_error(error, self._model) from error

    def close(self) -> None:
        del self._run
        self._maker = None

    def _value(self, name: str, array: np.ndarray) -> Any:
        if name in self._bf16:
            return self._to_typed_value(bf16_bits(array), ONNX_BFLOAT16)
        return self._to_value(np.ascontiguousarray(array))

    def _array(self, name: str, value: Any) -> np.ndarray:
        if name in self._bf16:
            return bf16_output(value)
        array: np.ndarray = value.numpy()
        return bytes_output(array) if name in self._strings else array


def _device(placement: Placement) -> tuple[bool, int]:
    on_gpu = placement.kind is InstanceKind.KIND_GPU
    return on_gpu, placement.device_id if on_gpu else 0


def _named(signature: Signature, datatype: DataType) -> frozenset[str]:
    return frozenset(spec.name for spec in (*signature.inputs, *signature.outputs) if spec.datatype is datatype)
