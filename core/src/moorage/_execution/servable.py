"""A version that serves: its configuration, the check of its requests, its queue and its instances."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from moorage._execution.check import RequestCheck
from moorage._execution.crew import Crew, Member
from moorage._execution.statistics import Recorder, total
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
        crew: Crew,
        members: Sequence[Member],
        labels: Mapping[str, Sequence[str]],
        recorders: Sequence[Recorder] = (),
        continues: tuple[Servable, Sequence[Member]] | None = None,
    ) -> None:
        """`members` of the crew are its instances. `recorders` count what does not come to one, or came to one that has left.

        `continues` says which servable of the same crew it is to take over from, and which members are new: these take no
        request before `relieve`.
        """
        self.name = config.name
        self.version = version
        self.config = config
        self.shown = shown or config
        """The configuration as metadata show it: with what the model file tells of the outputs."""
        self.check = RequestCheck(config)
        self.labels = labels
        """Output name to the labels of its classes."""
        self.crew = crew
        self.members = tuple(members)
        counted = (*recorders, *(member.thread.recorder for member in members))
        self.recorders = tuple({id(recorder): recorder for recorder in counted}.values())
        self._queue = crew.queue
        self._before: Servable | None = continues[0] if continues is not None else None
        self._leaving: Sequence[Member] = continues[1] if continues is not None else ()

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
        return total(self.recorders)

    def relieve(self) -> None:
        """Take over from the servable that this one continues: new instances begin, those that are not wanted any more end."""
        old = self._before
        if old is None:
            return
        for member in self._leaving:
            member.seat.open()
        self._before, self._leaving = None, ()
        old._leaving = tuple(member for member in old.members if member not in self.members)
        for member in old._leaving:
            member.seat.leave()

    def close(self) -> None:
        """End the instances when they have run what is queued, then close the model; not what another servable uses. Blocks."""
        self.crew.dismiss(self._leaving)
        self.crew.leave()
