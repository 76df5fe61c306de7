"""What the servables of one loaded version share while one follows another: the loaded model, its queue, its instances."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from threading import Lock

from attrs import frozen

from moorage._execution.instances import InstanceThread
from moorage._execution.local import LocalFiles
from moorage._execution.placement import Post
from moorage._execution.queues import JobQueue
from moorage._execution.seats import Seat
from moorage._execution.warmup import Sample
from moorage.backend import LoadedModel
from moorage.config.schema import ModelConfig
from moorage.errors import ModelError, MoorageError, Unavailable, told


@frozen(eq=False)
class Member:
    """An instance at its post."""

    post: Post
    seat: Seat
    thread: InstanceThread


class Crew:
    """Keeps a loaded model until the last servable that uses it is closed. `where` names model and version in errors.

    `files` are those of the model, which are closed after it.
    """

    def __init__(self, loaded: LoadedModel, queue: JobQueue, where: str, files: LocalFiles) -> None:
        self.queue = queue
        self.files = files
        self._loaded = loaded
        self._where = where
        self._members: set[Member] = set()
        self._users = 1
        self._lock = Lock()

    def hire(self, posts: Iterable[Post], config: ModelConfig, warmups: Sequence[Sample], *, waiting: bool) -> list[Member]:
        """Start an instance for each post, or none if one fails, whose error is raised. `waiting` ones take no request yet."""
        hired: list[Member] = []
        try:
            for post in posts:
                seat = Seat(self.queue, waiting=waiting)
                make = partial(self._loaded.instance, post.place)
                thread = InstanceThread(post.place.name, config, seat, make, warmups)
                self._start(thread)
                hired.append(Member(post, seat, thread))
        except BaseException:
            self.dismiss(hired)
            raise
        with self._lock:
            self._members.update(hired)
        return hired

    def dismiss(self, members: Iterable[Member]) -> None:
        """End these instances, when they have answered the requests that they run. Blocks."""
        leaving = list(members)
        for member in leaving:
            member.seat.leave()
        for member in leaving:
            member.thread.stop()
        with self._lock:
            self._members.difference_update(leaving)

    def join(self) -> None:
        """One more servable uses this. Raises Unavailable if it is too late."""
        with self._lock:
            if not self._users:
                raise Unavailable(f"{self._where} has been unloaded meanwhile")
            self._users += 1

    def leave(self) -> None:
        """A servable is closed. The last one ends the instances, when they have run what is queued, and the model. Blocks."""
        with self._lock:
            self._users -= 1
            if self._users:
                return
        self.queue.close()
        for member in self._members:
            member.seat.open()
        for member in self._members:
            member.thread.stop()
        try:
            self._loaded.close()
        finally:
            self.files.close()

    def _start(self, thread: InstanceThread) -> None:
        try:
            thread.start()
        except MoorageError:
            raise
        except Exception as error:
            where = f"{self._where}, instance '{thread.name}'"
            raise ModelError(f"{where}: {type(error).__name__}: {told(error)}") from error
