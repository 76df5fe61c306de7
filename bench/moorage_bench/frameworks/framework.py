"""What the set needs of a framework, and the repository that it makes of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from attrs import field, frozen

ADD_SUB = "add_sub"
BUSY = "busy"
WIDTH = 384
"""Columns of the square matrices that `busy` multiplies its input with."""
LAYERS = 6
ROWS = 64

Arrays = Mapping[str, np.ndarray]
Call = Callable[[Arrays], object]


@frozen
class Framework:
    """A framework and its backend.

    `write(kind, folder)` puts the files of `add_sub` or `busy` into a version folder; `bare(folder)` loads them without a
    server, on one thread, and returns how arrays become arrays. Both raise ImportError where the framework is missing.
    """

    backend: str
    filename: str
    write: Callable[[str, Path], None]
    bare: Callable[[Path], Call]
    separator: str = ""
    """Stands between the word and the number in the names of inputs and outputs."""
    platform: str = ""
    parameters: Mapping[str, str] = field(factory=dict)
    """What makes the backend use one thread for one request; `{instances}` stands for how many the model has."""

    def repository(self, root: Path) -> Path:
        """Write `add_sub` (two inputs [N, M] to their sum and difference) and `busy_1`, `busy_2` with as many instances."""
        names = [f"{word}{self.separator}{number}" for word in ("INPUT", "OUTPUT") for number in (0, 1)]
        self._model(root / ADD_SUB, ADD_SUB, names[:2], names[2:], dims=-1, instances=1)
        for instances in (1, 2):
            self._model(root / f"{BUSY}_{instances}", BUSY, names[:1], names[2:3], dims=WIDTH, instances=instances)
        return root

    def inputs(self, columns: int) -> dict[str, np.ndarray]:
        """Inputs of `add_sub`: FP32 [1, columns] each."""
        row = np.arange(columns, dtype=np.float32).reshape(1, columns)
        return {f"INPUT{self.separator}0": row, f"INPUT{self.separator}1": row + 1}

    def busy_input(self) -> dict[str, np.ndarray]:
        """An input of `busy`."""
        return {f"INPUT{self.separator}0": np.full((ROWS, WIDTH), 0.01, np.float32)}

    def _model(self, folder: Path, kind: str, inputs: list[str], outputs: list[str], *, dims: int, instances: int) -> None:
        (folder / "1").mkdir(parents=True, exist_ok=True)
        self.write(kind, folder / "1")
        lines = [f'backend: "{self.backend}"', f"max_batch_size: {ROWS}"]
        lines += [f'platform: "{self.platform}"'] if self.platform else []
        lines += [f'input {{ name: "{name}" data_type: TYPE_FP32 dims: [ {dims} ] }}' for name in inputs]
        lines += [f'output {{ name: "{name}" data_type: TYPE_FP32 dims: [ {dims} ] }}' for name in outputs]
        lines += [f"instance_group {{ kind: KIND_CPU count: {instances} }}"]
        parameters = {key: text.format(instances=instances) for key, text in self.parameters.items()}
        lines += [f'parameters {{ key: "{key}" value {{ string_value: "{text}" }} }}' for key, text in parameters.items()]
        (folder / "config.pbtxt").write_text("\n".join(lines) + "\n")


def weights() -> np.ndarray:
    """The matrix of `busy`: FP32 [WIDTH, WIDTH], which neither grows nor shrinks what it is multiplied with by much."""
    matrix = np.random.default_rng(0).standard_normal((WIDTH, WIDTH), dtype=np.float32)
    matrix /= np.sqrt(np.float32(WIDTH))
    return matrix
