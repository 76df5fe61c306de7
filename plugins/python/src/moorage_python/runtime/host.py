"""Runs the code of a model: the boundary behind which a model may as well live in another process.

What passes it is plain: texts and paths in, requests and responses of the runtime's own classes, `HostFailure` for what went
wrong.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from moorage_python.runtime.failures import ErrorCode, NotSupportedYet
from moorage_python.runtime.imports import ImportContext
from moorage_python.runtime.loop import LoopThread
from moorage_python.runtime.model_config import ModelConfig
from moorage_python.runtime.requests import InferenceRequest
from moorage_python.runtime.responses import InferenceResponse
from moorage_python.runtime.tracing import describe

CLASS = "TritonPythonModel"


class HostFailure(Exception):
    """The model's code raised, or broke the rules."""

    def __init__(self, message: str, code: ErrorCode = ErrorCode.INTERNAL) -> None:
        super().__init__(message)
        self.code = code


Result = InferenceResponse | HostFailure | None


class Host:
    """The code of one version, imported."""

    def __init__(self, label: str, file: Path, folders: Sequence[Path]) -> None:
        self.label = label
        self._context = ImportContext(label, folders)
        try:
            module = self._context.load(file)
        except (Exception, SystemExit) as error:
            self.close()
            raise _failure(f"cannot import {file}:", error) from error
        self.model_class: Any = getattr(module, CLASS, None)
        if self.model_class is None:
            self.close()
            raise HostFailure(f"{file} has no class {CLASS}")

    def auto_complete(self, config: str) -> dict[str, Any] | None:
        """The configuration as the model's `auto_complete_config` fills it; None if it has no such method."""
        hook = getattr(self.model_class, "auto_complete_config", None)
        if hook is None:
            return None
        try:
            filled = hook(ModelConfig(config))
        except (Exception, SystemExit) as error:
            raise _failure("auto_complete_config raised", error) from error
        if not isinstance(filled, ModelConfig):
            raise HostFailure(
                f"auto_complete_config must return the ModelConfig that it was given, not {type(filled).__name__}"
            )
        return filled.as_dict()

    def instance(self, args: Mapping[str, str], *, decoupled: bool) -> HostedInstance:
        """A new, initialized instance."""
        return HostedInstance(self.label, self.model_class, args, decoupled=decoupled)

    def close(self) -> None:
        """Forget the modules."""
        self._context.close()


class HostedInstance:
    """One object of the model's class."""

    def __init__(self, label: str, model_class: Any, args: Mapping[str, str], *, decoupled: bool) -> None:
        self._label = label
        self._decoupled = decoupled
        self._loop = LoopThread(f"{label} coroutines")
        try:
            self._model = model_class()
            if hasattr(self._model, "initialize"):
                self._model.initialize(dict(args))
        except (Exception, SystemExit) as error:
            raise _failure("initialize raised", error) from error
        self._execute = getattr(self._model, "execute", None)

    def execute(self, requests: Sequence[InferenceRequest]) -> list[Result]:
        """The result for each request; None if it is, or will be, answered through its sender."""
        if self._execute is None:
            return self._fail_all(requests, HostFailure(f"{CLASS} has no method 'execute'"))
        try:
            returned = self._execute(requests)
            if type(returned) is not list and asyncio.iscoroutine(returned):
                returned = self._run(returned, requests)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever the model raises fails its requests only
            return self._fail_all(requests, _failure("execute raised", error))
        if self._decoupled:
            return self._nothing(requests, returned)
        if not isinstance(returned, (list, tuple)):
            return self._without_list(requests, returned)
        if len(returned) != len(requests):
            message = f"execute was given {len(requests)} requests but returned {len(returned)} responses"
            return self._fail_all(requests, HostFailure(message))
        return [_result(request, entry) for request, entry in zip(requests, returned, strict=True)]

    def close(self) -> None:
        """Stop coroutines and finalize the model. Raises HostFailure if `finalize` raises."""
        try:
            if hasattr(self._model, "finalize"):
                self._model.finalize()
        except (Exception, SystemExit) as error:
            raise _failure("finalize raised", error) from error
        finally:
            self._loop.close()
            self._model = self._execute = None

    def _run(self, coroutine: Any, requests: Sequence[InferenceRequest]) -> Any:
        if not self._decoupled:
            return self._loop.wait(coroutine)

        def failed(error: BaseException) -> None:
            text = f"execute raised {describe(error)}"
            for request in requests:
                request.get_response_sender().fail(text)

        self._loop.start(coroutine, failed)
        return None

    def _nothing(self, requests: Sequence[InferenceRequest], returned: object) -> list[Result]:
        if returned is None:
            return [None] * len(requests)
        message = (
            f"the model is decoupled, so execute must return None, not {type(returned).__name__}; "
            "send responses with request.get_response_sender()"
        )
        return self._fail_all(requests, HostFailure(message))

    def _without_list(self, requests: Sequence[InferenceRequest], returned: object) -> list[Result]:
        if returned is None:
            return [_result(request, None) for request in requests]
        message = f"execute must return a list of InferenceResponse, one for each request, not {type(returned).__name__}"
        return self._fail_all(requests, HostFailure(message))

    @staticmethod
    def _fail_all(requests: Sequence[InferenceRequest], failure: HostFailure) -> list[Result]:
        """The failure for each request that is not answered yet."""
        return [failure if request.sender is None or request.sender.finish() else None for request in requests]


def _result(request: InferenceRequest, entry: object) -> Result:
    sender = request.sender
    if isinstance(entry, InferenceResponse):
        return entry if sender is None or sender.finish() else None
    if entry is None and sender is not None:
        return None
    if sender is not None and not sender.finish():
        return None
    if entry is None:
        return HostFailure("execute returned None for a request that it has not answered; return an InferenceResponse")
    return HostFailure(f"execute returned a {type(entry).__name__} in its list; it must hold InferenceResponse objects")


def _failure(doing: str, error: BaseException) -> HostFailure:
    code = ErrorCode.UNSUPPORTED if isinstance(error, NotSupportedYet) else ErrorCode.INTERNAL
    return HostFailure(f"{doing} {describe(error)}", code)
