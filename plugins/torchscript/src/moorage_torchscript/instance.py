"""An instance of any model of this plugin: arrays in, PyTorch's call, arrays out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import frozen

from moorage.backend import BatchInstance
from moorage.errors import ModelError, RequestError
from moorage_torchscript.dtypes import text_array, to_array
from moorage_torchscript.faults import run_error
from moorage_torchscript.running import Running


@frozen
class Feed:
    """An input of the configuration and the slot that it goes to. `convert` makes the model's value of an array."""

    name: str
    slot: int
    convert: Callable[[np.ndarray], Any]
    optional: bool = False


@frozen
class Take:
    """An output of the configuration. `pick` finds it in a model's results.

    `shape` is what a list of strings becomes, without the batch dimension; one size may be -1.
    """

    name: str
    pick: Callable[[Any], Any]
    shape: tuple[int, ...] = (-1,)


@frozen
class Wiring:
    """How requests reach a model's call and how its results come back."""

    feeds: tuple[Feed, ...]
    takes: Mapping[str, Take]
    slots: tuple[Any, ...]
    """What the call is given at each slot that no request fills."""
    batches: bool
    copy_outputs: bool = False


Call = Callable[[Sequence[Any]], Any]
"""Runs the model with a value for each slot."""


class TorchInstance(BatchInstance):
    """Runs one batch at a time with a model's call."""

    def __init__(self, model: str, call: Call, wiring: Wiring, running: Running) -> None:
        self._model = model
        self._call = call
        self._feeds = wiring.feeds
        self._takes = wiring.takes
        self._slots = wiring.slots
        self._batches = wiring.batches
        self._copy = wiring.copy_outputs
        self._running = running
        self._torch = running.torch
        self._tensor = running.torch.Tensor
        running.enter_thread()

    def run(self, inputs: Mapping[str, np.ndarray], outputs: Sequence[str]) -> Mapping[str, np.ndarray]:
        running = self._running
        if running.before is not None:
            running.before()
        try:
            with running.guard():
                result = self._call(self._filled(inputs))
                rows = self._rows(inputs)
                return {name: self._array(self._takes[name], result, rows) for name in outputs}
        except Exception as error:
            raise run_error(error, self._model, inputs) from error
        finally:
            if running.after is not None:
                running.after()

    def close(self) -> None:
        del self._call

    def _filled(self, inputs: Mapping[str, np.ndarray]) -> list[Any]:
        slots = list(self._slots)
        for feed in self._feeds:
            array = inputs.get(feed.name)
            if array is not None:
                slots[feed.slot] = feed.convert(array)
            elif not feed.optional:
                raise RequestError(f"model '{self._model}' needs input '{feed.name}', which the request lacks")
        return slots

    def _rows(self, inputs: Mapping[str, np.ndarray]) -> tuple[int, ...]:
        return next((array.shape[:1] for array in inputs.values()), ()) if self._batches else ()

    def _array(self, take: Take, result: Any, rows: tuple[int, ...]) -> np.ndarray:
        value = take.pick(result)
        if isinstance(value, self._tensor):
            return to_array(self._torch, value, copy=self._copy)
        if isinstance(value, list) and all(isinstance(element, str) for element in value):
            return text_array(take.name, value, (*rows, *take.shape), self._model)
        raise ModelError(
            f"model '{self._model}': output '{take.name}' is {_described(value)}; an output is a Tensor or a List[str]"
        )


def _described(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"a {type(value).__name__} of {', '.join(sorted({type(element).__name__ for element in value})) or 'nothing'}"
    return f"of type {type(value).__name__}"
