"""Instances: requests of the server become the model's, and its responses the server's."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Sequence

from moorage.backend import Instance, LoadContext
from moorage.errors import MoorageError
from moorage.types import InferResponse, Job
from moorage_python.answers import Answers
from moorage_python.jobs import JobRequest, RequestKind
from moorage_python.runtime.host import HostedInstance, HostFailure
from moorage_python.runtime.responses import InferenceResponse, InferenceResponseSender

_log = logging.getLogger(__name__)


class PythonInstance(Instance):
    """One object of a model's class."""

    def __init__(self, context: LoadContext, hosted: HostedInstance) -> None:
        self._hosted = hosted
        self._answers = Answers(context.model_name, context.config)
        self._label = f"{context.model_name} version {context.version}"
        self._senders: weakref.WeakSet[InferenceResponseSender] = weakref.WeakSet()
        self._kind = RequestKind(context.model_name, context.version, self._answers, context.config.decoupled, self._senders)

    def execute(self, jobs: Sequence[Job]) -> Sequence[InferResponse | MoorageError | None]:
        kind = self._kind
        requests = [JobRequest(job, kind) for job in jobs]
        return [self._answer(request, result) for request, result in zip(requests, self._hosted.execute(requests), strict=True)]

    def close(self) -> None:
        """Finalize the model; requests that it has not finished by then fail."""
        senders = list(self._senders)
        try:
            self._hosted.close()
        except HostFailure as failure:
            _log.error("model '%s': %s", self._label, failure)
        for sender in senders:
            sender.fail("the model was unloaded before it had sent the final response")

    def _answer(
        self, request: JobRequest, result: InferenceResponse | HostFailure | None
    ) -> InferResponse | MoorageError | None:
        if result is None:
            return None
        if isinstance(result, HostFailure):
            return self._answers.failure(result)
        try:
            return self._answers.response(result, request.job.request)
        except MoorageError as error:
            return error
