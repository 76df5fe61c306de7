"""What the tests of this plugin share."""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import define, evolve

from moorage.backend import Instance, LoadContext, LoadedModel, Placement
from moorage.config.schema import InstanceKind, ModelConfig, ModelInput, ModelOutput, TransactionPolicy
from moorage.errors import MoorageError
from moorage.testing import Recorder
from moorage.types import DataType, InferRequest, InferResponse, Job, RequestedOutput, Tensor
from moorage_python.backend import PythonBackend

CONFIG = ModelConfig(
    name="m",
    backend="python",
    input=(ModelInput("X", DataType.INT32, dims=(-1,)),),
    output=(ModelOutput("Y", DataType.INT32, (-1,)),),
)
HEAD = "import numpy as np\nimport triton_python_backend_utils as pb_utils\n"


@define
class Served:
    """A loaded model with one instance."""

    model: LoadedModel
    instance: Instance
    folder: Path

    def answer(self, *jobs: Job) -> list[InferResponse | MoorageError | None]:
        return list(self.instance.execute(jobs))

    def values(self, x: Any = (1,)) -> list[Any]:
        """The first output for this input."""
        (answer,) = self.answer(ask(x))
        assert isinstance(answer, InferResponse), answer
        assert answer.error is None
        values: list[Any] = answer.outputs[0].array.tolist()
        return values

    def error(self, x: Any = (1,)) -> MoorageError:
        (answer,) = self.answer(ask(x))
        assert isinstance(answer, MoorageError), answer
        return answer


def ask(x: Any = (1,), outputs: tuple[str, ...] = (), **request: Any) -> Job:
    """A job with the input X."""
    array = np.asarray(x, np.int32) if not isinstance(x, np.ndarray) else x
    datatype = DataType.from_numpy(array.dtype)
    assert datatype is not None
    tensors = {"X": Tensor("X", datatype, array)}
    return Job(InferRequest("m", tensors, outputs=tuple(map(RequestedOutput, outputs)), **request), Recorder())


@pytest.fixture
def job() -> Callable[..., Job]:
    return ask


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Served]]:
    """`serve("class TritonPythonModel: ...")`, with other files of the version by keyword (`helper__py="..."`)."""
    served: list[Served] = []
    numbers = itertools.count(1)

    def serve(
        code: str,
        *,
        config: ModelConfig = CONFIG,
        decoupled: bool = False,
        version: int = 0,
        files: dict[str, str] | None = None,
    ) -> Served:
        version = version or next(numbers)
        folder = tmp_path / "m" / str(version)
        for name, text in {"model.py": HEAD + textwrap.dedent(code), **(files or {})}.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text))
        if decoupled:
            config = evolve(config, model_transaction_policy=TransactionPolicy(decoupled=True))
        model = PythonBackend().load(LoadContext("m", version, config, folder, folder.parent, "model.py"))
        try:
            instance = model.instance(Placement("m_0_0", InstanceKind.KIND_CPU))
        except BaseException:
            model.close()
            raise
        assert isinstance(instance, Instance)
        served.append(Served(model, instance, folder))
        return served[-1]

    yield serve
    for one in served:
        one.instance.close()
        one.model.close()
