"""POLL: what lies in the repositories is served; they are looked at again and again, and finished changes are acted upon."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from contextlib import suppress

from moorage._control.retries import Retries
from moorage._control.watch import Check, Decision, Look, Memory, decide
from moorage._logging import get_logger
from moorage.control import ControlContext, ControlMode, LoadOptions, ModelId, Outcome, Snapshot
from moorage.errors import MoorageError, StorageError, Unavailable

log = get_logger("moorage.control")


class Poll(ControlMode):
    name = "poll"

    def __init__(self, context: ControlContext) -> None:
        super().__init__(context)
        self._memory = Memory()
        self._checked: dict[Check, bool] = {}
        self._checking: set[Check] = set()
        self._unreadable: frozenset[str] = frozenset()
        self._retries = Retries()
        self._tasks: set[asyncio.Task[None]] = set()
        self._news = asyncio.Event()
        self._next_look = 0.0

    async def start(self) -> list[Outcome]:
        """Load all models whose files are at rest, as far as two looks can tell; the others are left to `run`."""
        look = await self._look(report=False)
        look.snapshot.require_readable()
        if self.context.settle_seconds > 0:
            await self._pause(self._decide(look).due or 0)
            look = await self._look()
        await asyncio.gather(*map(self._check, self._decide(look, commit=False).checks))
        decision = self._decide(look)
        outcomes = []
        for models, options in _batches(decision, look.snapshot):
            outcomes += await self.context.want(models, options)
        self._note(outcomes)
        return outcomes

    async def run(self) -> None:
        try:
            while True:
                await self._pause(self._next_look)
                try:
                    look = await self._look()
                    self._act(self._decide(look), look.snapshot)
                except Exception:
                    self._next_look = self._now() + self.context.poll_seconds
                    log.exception("a look at the model repositories failed; it is tried again")
        finally:
            for task in self._tasks:
                task.cancel()

    async def _pause(self, until: float) -> None:
        """Wait for this time, or for the end of a check. Timers may be early."""
        while not self._news.is_set() and (left := until - self._now()) > 0:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), left)
        self._news.clear()

    async def load(self, name: str, options: LoadOptions) -> list[Outcome]:
        raise self._refusal("load", name)

    async def unload(self, name: str, *, dependents: bool, versions: frozenset[int] = frozenset()) -> list[Outcome]:
        raise self._refusal("unload", name)

    @staticmethod
    def _refusal(action: str, name: str) -> Unavailable:
        mode = "the model control mode is POLL, which serves what lies in the model repositories"
        return Unavailable(
            f"cannot {action} model '{name}': {mode}; change the repository, or start the server with "
            "--model-control-mode=explicit"
        )

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()

    async def _look(self, *, report: bool = True) -> Look:
        began = self._now()
        snapshot = await self.context.scan()
        if report:
            self._report(snapshot)
        return Look(snapshot, began, self._now())

    def _report(self, snapshot: Snapshot) -> None:
        """Say once that a repository cannot be read, and once that it can be again."""
        unreadable = frozenset(snapshot.unreadable)
        for url in sorted(unreadable - self._unreadable):
            error = snapshot.unreadable[url].message
            log.error("model repository cannot be read; its models stay as they are", repository=url, error=error)
        for url in sorted(self._unreadable - unreadable):
            log.info("model repository can be read again", repository=url)
        self._unreadable = unreadable

    def _decide(self, look: Look, *, commit: bool = True) -> Decision:
        decision = decide(self._memory, look, self.context.settle_seconds, self._checked)
        self._next_look = decision.next_look(look.ended, self.context.poll_seconds)
        if commit:
            self._memory = decision.memory
            self._checked = {check: fits for check, fits in self._checked.items() if check.model in look.snapshot.models}
        return decision

    def _act(self, decision: Decision, snapshot: Snapshot) -> None:
        """Begin what is decided. Nothing is waited for: one model must not hold up another, nor the next look."""
        for model in decision.wanted:
            problem = snapshot.models[model].problem
            if problem is not None:
                log.error("model cannot be loaded as it stands", model=str(model), error=problem.message)
        for models, options in _batches(decision, snapshot):
            log.info("models are new or have changed", models=[str(model) for model in models])
            self._begin(self._load(models, options))
        again = self._retries.due(self._now(), decision, snapshot)
        if again:
            log.info("models that could not be read are tried again", models=[str(model) for model in again])
            self._begin(self._load(again, LoadOptions()))
        if decision.gone:
            log.info("models are gone", models=[str(model) for model in decision.gone])
            self._begin(self._unload(decision.gone))
        for check in decision.checks:
            if check not in self._checking:
                self._begin(self._check(check))

    def _begin(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("acting on a change of the model repositories failed", exc_info=error)

    async def _load(self, models: list[ModelId], options: LoadOptions) -> None:
        self._note(await self.context.want(models, options))
        gone = [model for model in models if model not in self._memory.known]
        if gone:  # while the load was on its way
            await self.context.release(gone)

    def _note(self, outcomes: Iterable[Outcome]) -> None:
        for outcome in outcomes:
            self._retries.note(outcome, self._now(), self.context.poll_seconds)

    async def _unload(self, models: Iterable[ModelId]) -> None:
        await self.context.release(list(models))

    async def _check(self, check: Check) -> None:
        """Compare a version with its list of sums, and look again when that is done."""
        self._checking.add(check)
        try:
            doubt = await self.context.doubt(check.model, check.version)
        except StorageError as error:
            log.warning("version cannot be checked now", model=str(check.model), version=check.version, reason=str(error))
            return
        except MoorageError as error:
            doubt = str(error)
        finally:
            self._checking.discard(check)
        if doubt:
            where = {"model": str(check.model), "version": check.version}
            log.warning("version is left alone until its files change", **where, reason=doubt)
        others = {other: fits for other, fits in self._checked.items() if other[:2] != check[:2]}
        self._checked = {**others, check: not doubt}
        self._news.set()


def _batches(decision: Decision, snapshot: Snapshot) -> list[tuple[list[ModelId], LoadOptions]]:
    """What is loaded together: all models that are taken as they are, and each that has unfinished versions."""
    sound = {model: left_out for model, left_out in decision.wanted.items() if snapshot.models[model].problem is None}
    whole = [model for model, left_out in sound.items() if not left_out]
    partial = [([model], LoadOptions(unfinished=left_out)) for model, left_out in sound.items() if left_out]
    return [*([(whole, LoadOptions())] if whole else []), *partial]
