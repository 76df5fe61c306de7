"""What comes back from a model reaches the client, or an error does."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from moorage._inference.answer import Answer
from moorage.errors import ModelError, MoorageError
from moorage.types import InferRequest, InferResponse


class Handle:
    """A version that is held."""

    def __init__(self) -> None:
        self.servable: Any = SimpleNamespace(name="m", version=1, check=SimpleNamespace(restore=lambda response: None))
        self.held = True

    def release(self) -> None:
        self.held = False


class Picky:
    """A protocol's sink that cannot encode what it is given."""

    def __init__(self) -> None:
        self.error: MoorageError | None = None

    def send(self, response: InferResponse, *, final: bool) -> None:
        raise OverflowError("2**70 fits nowhere")

    def fail(self, error: MoorageError) -> None:
        self.error = error

    def complete(self) -> None:
        raise AssertionError("nothing was sent")


def test_a_response_that_cannot_be_encoded_is_an_error() -> None:
    handle, sink = Handle(), Picky()
    Answer(handle, InferRequest("m", {}), sink).send(InferResponse([]), final=True)  # type: ignore[arg-type]
    assert isinstance(sink.error, ModelError)
    assert "model 'm'" in str(sink.error) and "2**70 fits nowhere" in str(sink.error)
    assert not handle.held
