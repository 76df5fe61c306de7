"""Stacks the requests of a batch for a `BatchInstance` and splits what it gives back."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import numpy as np

from moorage._execution.statistics import Execution
from moorage.backend import BatchInstance
from moorage.config.schema import ModelConfig, ModelOutput
from moorage.errors import ModelError, MoorageError, Unsupported
from moorage.types import DataType, InferResponse, Job, Tensor

Answer = InferResponse | MoorageError | None


class BatchRunner:
    """Runs requests on one `BatchInstance`: together where their shapes allow it, one after the other where not."""

    def __init__(self, config: ModelConfig, instance: BatchInstance) -> None:
        """Raises Unsupported for a model that wants its batches put together in another way."""
        _refuse_ragged(config)
        self._model = config.name
        self._batches = config.batches
        self._instance = instance
        self._outputs = {item.name: item for item in config.output}
        self._all = tuple(self._outputs)

    def __call__(self, jobs: Sequence[Job], times: Execution) -> Sequence[Answer]:
        """An answer for each job, in order. Marks in `times` when the computing began and ended."""
        if len(jobs) == 1:
            return self._run(jobs, times)
        groups: dict[object, list[int]] = {}
        for index, job in enumerate(jobs):
            groups.setdefault(_key(job) if self._batches else index, []).append(index)
        answers: list[Answer] = [None] * len(jobs)
        for members in groups.values():
            for index, answer in zip(members, self._run_caught([jobs[i] for i in members], times), strict=True):
                answers[index] = answer
        return answers

    def _run_caught(self, jobs: Sequence[Job], times: Execution) -> Sequence[Answer]:
        """As `_run`, but the failure of this group stays with this group."""
        try:
            return self._run(jobs, times)
        except MoorageError as error:
            return [error] * len(jobs)
        except Exception as error:  # noqa: BLE001  a framework may raise anything
            return [ModelError(f"model '{self._model}': {error}")] * len(jobs)

    def _run(self, jobs: Sequence[Job], times: Execution) -> Sequence[Answer]:
        wanted = self._wanted(jobs)
        inputs = _stack(jobs)
        times.computing = time.monotonic_ns()
        arrays = self._instance.run(inputs, wanted)
        times.computed = time.monotonic_ns()
        tensors = [self._tensor(self._outputs[name], arrays) for name in wanted]
        if len(jobs) == 1:
            return [InferResponse(tensors)]
        return self._split(jobs, tensors)

    def _wanted(self, jobs: Sequence[Job]) -> Sequence[str]:
        asked = {output.name for job in jobs for output in job.request.outputs}
        if not asked or not all(job.request.outputs for job in jobs):
            return self._all
        return [name for name in self._all if name in asked]

    def _tensor(self, output: ModelOutput, arrays: Mapping[str, np.ndarray]) -> Tensor:
        array = arrays.get(output.name)
        if array is None:
            raise ModelError(f"model '{self._model}' gave no output '{output.name}', only {', '.join(arrays) or 'none'}")
        datatype = output.data_type
        if array.dtype != datatype.numpy and not (datatype is DataType.BYTES and array.dtype.kind in "OSU"):
            raise ModelError(
                f"output '{output.name}' of model '{self._model}' is {array.dtype}, the configuration says {datatype.config}"
            )
        self._check_shape(output, array.shape)
        return Tensor(output.name, datatype, array)

    def _check_shape(self, output: ModelOutput, shape: tuple[int, ...]) -> None:
        dims = output.reshape.shape if output.reshape is not None else output.dims
        row = shape[1:] if self._batches else shape
        if len(row) != len(dims) or any(dim not in (-1, size) for dim, size in zip(dims, row, strict=True)):
            expected = ([-1] if self._batches else []) + list(dims)
            raise ModelError(
                f"output '{output.name}' of model '{self._model}' has shape {list(shape)}, the configuration says {expected}"
            )

    def _split(self, jobs: Sequence[Job], tensors: Sequence[Tensor]) -> Sequence[Answer]:
        rows = [job.batch_size for job in jobs]
        ends = np.cumsum(rows)
        for tensor in tensors:
            if tensor.array.shape[0] != ends[-1]:
                raise ModelError(
                    f"output '{tensor.name}' of model '{self._model}' has {len(tensor.array)} rows for a batch of {ends[-1]}"
                )
        return [
            InferResponse([Tensor(t.name, t.datatype, t.array[end - count : end]) for t in tensors])
            for count, end in zip(rows, ends.tolist(), strict=True)
        ]


def _refuse_ragged(config: ModelConfig) -> None:
    ragged = ", ".join(item.name for item in config.input if item.allow_ragged_batch)
    fields = {
        "allow_ragged_batch": bool(ragged),
        "batch_input": bool(config.batch_input),
        "batch_output": bool(config.batch_output),
    }
    used = " and ".join(name for name, given in fields.items() if given)
    if used:
        raise Unsupported(f"model '{config.name}': ragged batches ({used}) are not supported yet")


def _key(job: Job) -> tuple[object, ...]:
    """Requests with the same key can be stacked: the same inputs, the same shapes but for the batch."""
    return tuple(sorted((name, tensor.array.shape[1:]) for name, tensor in job.request.inputs.items()))


def _stack(jobs: Sequence[Job]) -> dict[str, np.ndarray]:
    first = jobs[0].request.inputs
    if len(jobs) == 1:
        return {name: tensor.array for name, tensor in first.items()}
    return {name: np.concatenate([job.request.inputs[name].array for job in jobs]) for name in first}
