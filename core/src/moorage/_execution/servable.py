"""A version that serves: its configuration, the check of its requests, its queue and its instances."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from moorage._execution.check import RequestCheck
from moorage._execution.instances import InstanceThread
from moorage._execution.queues import JobQueue
from moorage._execution.statistics import Recorder, total
from moorage.backend import LoadedModel
from moorage.config.schema import ModelConfig
from moorage.types import InferRequest, Job, Sink


class Servable:
    """What a load gives and requests are submitted to. `submit` may be called from any thread."""

    def __init__(
        self,
        config: ModelConfig,
        version: int,
        *,
        shown: ModelConfig | None = None,
        loaded: LoadedModel,
        queue: JobQueue,
        instances: Sequence[InstanceThread],
        labels: Mapping[str, Sequence[str]],
        recorders: Sequence[Recorder] = (),
    ) -> None:
        """`recorders` count what does not come to an instance."""
        self.name = config.name
        self.version = version
        self.config = config
        self.shown = shown or config
        """The configuration as metadata show it: with what the model file tells of the outputs."""
        self.check = RequestCheck(config)
        self.labels = labels
        """Output name to the labels of its classes."""
        self._loaded = loaded
        self._queue = queue
        self._instances = tuple(instances)
        self._recorders = (*recorders, *(instance.recorder for instance in self._instances))

    def submit(self, request: InferRequest, sink: Sink) -> None:
        """Run a request, its answers go to `sink`. Raises RequestError at once if the request does not fit the model."""
        rows = self.check.accept(request)
        self._queue.put(Job(request, sink, batch_size=rows))

    @property
    def pending(self) -> int:
        """How many requests wait for an instance."""
        return len(self._queue)

    def statistics(self) -> Recorder:
        """The counts since the load."""
        return total(self._recorders)

    def close(self) -> None:
        """End the instances when they have run what is queued, then close the model. Blocks."""
        self._queue.close()
        for instance in self._instances:
            instance.stop()
        self._loaded.close()
