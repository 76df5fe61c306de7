"""A server of some models, and Triton's own client asking it in every way."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any, Self

import numpy as np
import tritonclient.grpc as triton_grpc
import tritonclient.http as triton_http

from moorage.server import Server
from moorage.types import DataType

Arrays = Mapping[str, np.ndarray]
Ask = Callable[[str, Arrays, Sequence[str]], dict[str, np.ndarray]]


class Served:
    """The models of a repository, served over HTTP and gRPC in this process, and clients of both."""

    def __init__(self, repository: Path, **options: Any) -> None:
        self.server = Server(model_repository=repository, **options)

    def __enter__(self) -> Self:
        self.server.start()
        self._http = f"127.0.0.1:{self.server.serve_http(0, '127.0.0.1')}"
        self._grpc = f"127.0.0.1:{self.server.serve_grpc(0, '127.0.0.1')}"
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.server.close()

    def asking(self) -> Mapping[str, Ask]:
        """Every way of asking: `ask(model, inputs, outputs)` gives the outputs (all if none are named)."""
        return {"HTTP, JSON": self.http_json, "HTTP, binary": self.http_binary, "gRPC": self.grpc}

    def http_json(self, model: str, inputs: Arrays, outputs: Sequence[str] = ()) -> dict[str, np.ndarray]:
        """Tensors as JSON in both directions."""
        return self._over_http(model, inputs, outputs, binary=False)

    def http_binary(self, model: str, inputs: Arrays, outputs: Sequence[str] = ()) -> dict[str, np.ndarray]:
        """Tensors as bytes in both directions."""
        return self._over_http(model, inputs, outputs, binary=True)

    def grpc(self, model: str, inputs: Arrays, outputs: Sequence[str] = ()) -> dict[str, np.ndarray]:
        """Tensors in `raw_input_contents`."""
        given = [_filled(triton_grpc, name, array) for name, array in inputs.items()]
        wanted = [triton_grpc.InferRequestedOutput(name) for name in outputs] or None
        with triton_grpc.InferenceServerClient(self._grpc) as client:
            answer = client.infer(model, given, outputs=wanted)
        return {output.name: _array(answer, output.name) for output in answer.get_response().outputs}

    def agrees(self, model: str, inputs: Arrays, wanted: Arrays, *, rtol: float = 1e-6, json: bool = True) -> None:
        """Assert that the model gives the wanted outputs, in whatever way it is asked. `json` False leaves JSON out."""
        for way, ask in self.asking().items():
            if json or way != "HTTP, JSON":
                same(ask(model, inputs, list(wanted)), wanted, way, rtol=rtol)

    def agrees_with_many_clients(self, model: str, requests: Sequence[Arrays], wanted: Sequence[Arrays]) -> None:
        """Assert that each of many requests at once, which the scheduler may batch, gets its own answer."""
        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda inputs: self.grpc(model, inputs), requests))
        for found, expected in zip(answers, wanted, strict=True):
            same(found, expected, "gRPC, many clients", rtol=1e-5)

    def _over_http(self, model: str, inputs: Arrays, outputs: Sequence[str], *, binary: bool) -> dict[str, np.ndarray]:
        given = [_filled(triton_http, name, array, binary_data=binary) for name, array in inputs.items()]
        wanted = [triton_http.InferRequestedOutput(name, binary_data=binary) for name in outputs] or None
        with triton_http.InferenceServerClient(self._http) as client:
            answer = client.infer(model, given, outputs=wanted)
        return {output["name"]: _array(answer, output["name"]) for output in answer.get_response()["outputs"]}


@contextmanager
def serving(repository: Path, **options: Any) -> Iterator[Served]:
    """Serve a repository. A model that does not load is an error, with its reason."""
    with Served(repository, **options) as served:
        yield served


def same(found: Arrays, wanted: Arrays, where: str, *, rtol: float) -> None:
    """Assert that outputs have the wanted names, data types, shapes and values."""
    assert set(found) == set(wanted), where
    for name, array in wanted.items():
        assert found[name].dtype == array.dtype, f"{where}: {name}"
        assert found[name].shape == array.shape, f"{where}: {name}"
        if array.dtype.kind == "f":
            np.testing.assert_allclose(found[name], array, rtol=rtol, atol=rtol, err_msg=f"{where}: {name}")
        else:
            np.testing.assert_array_equal(found[name], array, err_msg=f"{where}: {name}")


def strings(*words: str | bytes, shape: Sequence[int] = (1, -1)) -> np.ndarray:
    """An array of `bytes`, as the official client gives strings back."""
    array = np.empty(len(words), dtype=object)
    array[:] = [word.encode() if isinstance(word, str) else word for word in words]
    return array.reshape(tuple(shape))


def _filled(package: ModuleType, name: str, array: np.ndarray, **how: Any) -> Any:
    datatype = DataType.from_numpy(array.dtype)
    assert datatype is not None, f"{name}: requests have no data type for {array.dtype}"
    tensor = package.InferInput(name, list(array.shape), datatype.wire)
    tensor.set_data_from_numpy(array, **how)
    return tensor


def _array(answer: Any, name: str) -> np.ndarray:
    array: np.ndarray = answer.as_numpy(name)
    if array.dtype.kind != "O":
        return array
    words = [word.encode() if isinstance(word, str) else word for word in array.ravel()]  # JSON has text
    return strings(*words, shape=array.shape)
