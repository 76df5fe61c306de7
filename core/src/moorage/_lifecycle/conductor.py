"""Acts on what the pure modules decide. All of it runs on one event loop, so there are no locks.

Progress is made in callbacks, not in the coroutines of those who wait: cancelling one of them changes nothing for the others.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Collection, Iterable
from functools import partial
from typing import Final, Generic

from moorage._lifecycle import graph
from moorage._lifecycle.models import Models
from moorage._lifecycle.plan import decide
from moorage._lifecycle.records import UNLOADED, Departure, Model, Rollout, S, Unit
from moorage._lifecycle.rollout import Verdict, exchange, joins, verdict
from moorage._lifecycle.serving import ServingMap, Slot
from moorage._lifecycle.status import Announcer
from moorage._lifecycle.transitions import State
from moorage._lifecycle.works import Works
from moorage._repository.spec import ModelSpec, VersionSpec
from moorage.control import ModelId, Outcome
from moorage.errors import Code, ErrorRecord

logger = logging.getLogger(__name__)


class Conductor(Generic[S]):
    """Brings models to where they are wanted."""

    def __init__(self, works: Works[S], announcer: Announcer[S], serving: ServingMap[S], retries: int) -> None:
        self.models: Final[Models[S]] = Models()
        self._works = works
        self._announcer = announcer
        self._serving = serving
        self._retries = retries
        self._serials = itertools.count(1)
        self.closing = False

    # A set of versions is wanted

    def aspire(self, spec: ModelSpec, *, force: bool | Collection[int] = False) -> asyncio.Future[Outcome]:
        """Start a rollout, or join the one that already goes there."""
        forced = frozenset(spec.versions if force is True else force or ())
        if self.closing:
            error = ErrorRecord(Code.UNAVAILABLE, f"model '{spec.id}' is not loaded: the server is shutting down")
            return self._answer(Outcome(spec.id, error))
        model = self.models.ensure(spec.id)
        if not spec.versions:
            model.problem = ErrorRecord(Code.INVALID_ARGUMENT, f"model '{spec.id}' has no version to load")
            return self._answer(Outcome(spec.id, model.problem))
        running = model.rollout
        if running is None or not joins(running.spec, running.force, spec, forced):
            running = self._start(model, spec, forced)
        return running.result

    def _start(self, model: Model[S], spec: ModelSpec, force: frozenset[int]) -> Rollout[S]:
        plan = decide(model.units, spec, force=force, renew=self._works.can_renew)
        fresh = [self._unit(spec, new) for new in plan.loads]
        fresh += [self._unit(spec, renewal.spec, renewal.unit) for renewal in plan.renewals]
        result = model.rollout.result if model.rollout else self._works.loop.create_future()
        model.generation += 1
        units = {unit.version: unit for unit in (*plan.carried, *fresh)}
        model.rollout = rollout = Rollout(model.generation, spec, force, units, result)
        model.wanted, model.problem, model.blocked = spec, None, False
        model.units.extend(fresh)
        self.models.leaving.pop(model.id, None)
        if spec.dependencies:
            self.models.mark_composite(model)
        for unit in plan.carried:
            unit.claimed, unit.fate = True, UNLOADED
        self._call_off_departures(model, plan.carried)
        for unit in plan.dropped:
            self._give_up(model, unit, "superseded by a newer load")
        self._works.loop.call_soon(self._advance, model, rollout.generation)
        return rollout

    def _unit(self, spec: ModelSpec, new: VersionSpec, donor: Unit[S] | None = None) -> Unit[S]:
        serial = next(self._serials)
        return Unit[S](serial, spec.id, new.version, new.fingerprint, new, uses=spec.dependencies, donor=donor)

    def _advance(self, model: Model[S], generation: int) -> None:
        """Take a rollout as far as it goes now, unless it has been superseded or has ended."""
        rollout = model.rollout
        if rollout is None or rollout.generation != generation or not self._begun(model, rollout):
            return
        match verdict(unit.state for unit in rollout.units.values()):
            case Verdict.SWAP:
                self._swap(model, rollout)
            case Verdict.FAIL:
                error = next(unit.error for unit in rollout.units.values() if unit.error)
                self._fail(model, rollout, error)
            case Verdict.WAIT:
                pass

    def _begun(self, model: Model[S], rollout: Rollout[S]) -> bool:
        """Start the loads of a rollout once its parts serve. False while they do not, or if that made it fail."""
        if rollout.started:
            return True
        parts = self.models.parts(model, rollout.spec.dependencies)
        error = self.models.obstacle(model, parts)
        if error is not None:
            model.blocked = True
            self._fail(model, rollout, error)
            return False
        if graph.pending(parts):
            return False
        rollout.started = True
        for unit in rollout.units.values():
            if unit.state is State.NEW:
                self._enter(model, unit, State.LOADING)
                self._load(model, unit)
        return True

    def _swap(self, model: Model[S], rollout: Rollout[S]) -> None:
        """The one moment at which a rollout takes over. Bad news is told before it, good news after it."""
        change = exchange(rollout.units, model.units)
        replaced = {unit.version for unit in change.enter}
        for unit in change.retire:
            self._enter(model, unit, State.DRAINING, quiet=unit.version in replaced)
        if not change.empty:
            self._publish(model, rollout.units.values())
        for unit in change.enter:
            if unit.donor is not None and unit.slot is not None:
                self._works.relieve(unit.slot.servable)
                unit.donor = None
            self._enter(model, unit, State.READY)
        for unit in rollout.units.values():
            unit.uses = rollout.spec.dependencies
        self._drain(model, change.retire)
        self._settle(model, rollout, Outcome(model.id, changed=not change.empty))

    def _fail(self, model: Model[S], rollout: Rollout[S], error: ErrorRecord) -> None:
        for unit in rollout.units.values():
            if unit.state is State.NEW:
                unit.error = error
                self._enter(model, unit, State.FAILED, error.message)
            else:
                self._give_up(model, unit, f"not served, since the load failed: {error.message}")
        self._settle(model, rollout, Outcome(model.id, error))

    def _settle(self, model: Model[S], rollout: Rollout[S], outcome: Outcome) -> None:
        """A rollout has ended: tell those who wait, and those whose part this model is."""
        waiting = self.models.waiting(model)
        model.rollout, model.failure = None, outcome.error
        returning = [] if outcome.error or self.closing else self.models.blocked_by(model)
        resumed = [self.aspire(user.wanted) for user in returning if user.wanted]
        if resumed:
            asyncio.gather(*resumed).add_done_callback(lambda _: _resolve(rollout.result, outcome))
        else:
            _resolve(rollout.result, outcome)
        for user in waiting:
            self._works.loop.call_soon(self._advance, user, user.generation)
        self._sweep_soon()

    # Single versions

    def _load(self, model: Model[S], unit: Unit[S]) -> None:
        if unit.spec is not None:
            unit.attempts += 1
            if unit.donor is not None and unit.donor.state is not State.READY:
                unit.donor = None
            donor = unit.donor.slot if unit.donor is not None else None
            then = partial(self._loaded, model, unit)
            unit.ticket = self._works.load(unit.spec, then, donor.servable if donor is not None else None)

    def _loaded(self, model: Model[S], unit: Unit[S], result: S | ErrorRecord) -> None:
        if not isinstance(result, ErrorRecord):
            unit.slot = Slot(result)
            self._enter(model, unit, State.STAGED)
            if not unit.claimed:
                self._unload(model, unit)
        elif unit.claimed and unit.attempts <= self._retries:
            logger.warning("loading again after a failure: %s", result.message)
            self._load(model, unit)
        else:
            self._load_failed(model, unit, result)
        self._advance(model, model.generation)

    def _load_failed(self, model: Model[S], unit: Unit[S], error: ErrorRecord) -> None:
        unit.error = error
        self._enter(model, unit, State.FAILED, error.message)
        if model.wanted is None:
            self._enter(model, unit, State.UNLOADED, unit.fate)

    def _give_up(self, model: Model[S], unit: Unit[S], fate: str) -> None:
        """A version under way is not needed any more. A load that runs cannot be stopped: what it brings is closed."""
        if unit.state not in {State.NEW, State.LOADING, State.STAGED}:
            return
        unit.claimed, unit.fate = False, fate
        if unit.state is State.STAGED:
            self._unload(model, unit)
        elif unit.ticket is None or unit.ticket.cancel():
            self._enter(model, unit, State.UNLOADED, fate)

    def _drain(self, model: Model[S], units: Iterable[Unit[S]]) -> None:
        """Unload each of these, which have left the map, when no request holds it any more."""
        for unit in units:
            if unit.slot is not None:
                unit.slot.close(partial(self._works.call, self._drained, model, unit))

    def _drained(self, model: Model[S], unit: Unit[S]) -> None:
        if unit.state is State.DRAINING:
            self._unload(model, unit)

    def _unload(self, model: Model[S], unit: Unit[S]) -> None:
        slot = unit.slot
        self._enter(model, unit, State.UNLOADING)
        if slot is not None:
            self._works.close(slot.servable, lambda: self._enter(model, unit, State.UNLOADED, unit.fate))

    def _enter(self, model: Model[S], unit: Unit[S], state: State, reason: str = "", *, quiet: bool = False) -> None:
        unit.enter(state, reason)
        if not quiet:
            self._announcer.entered(model, unit)
        if state.ended:
            model.forget_ended()
            for departure in model.departures:
                departure.units.discard(unit)
                if not departure.units:
                    _resolve(departure.result, Outcome(model.id))
            model.departures = [departure for departure in model.departures if departure.units]
            self._sweep_soon()

    def _publish(self, model: Model[S], units: Iterable[Unit[S]]) -> None:
        self._serving.publish(model.id, {unit.version: unit.slot for unit in units if unit.slot is not None})

    # A model is not wanted any more

    def depart(self, model_id: ModelId) -> asyncio.Future[Outcome]:
        """Have a model unloaded, after the models that depend on it."""
        model = self.models.find(model_id)
        if model is None or model.idle:
            return self._answer(Outcome(model_id, changed=False))
        model.wanted, model.blocked, model.problem = None, False, None
        self._withdraw(model, ErrorRecord(Code.CANCELLED, f"model '{model_id}' was unloaded while it was loading"))
        for unit in model.units:
            if unit.state is State.FAILED:
                self._enter(model, unit, State.UNLOADED, UNLOADED)
        result = self.departure(model, model.live)
        self._sweep()
        return result

    def departure(self, model: Model[S], units: Iterable[Unit[S]]) -> asyncio.Future[Outcome]:
        """Wait until these units of a model are gone."""
        departure = Departure(set(units), self._works.loop.create_future())
        if departure.units:
            model.departures.append(departure)
        else:
            _resolve(departure.result, Outcome(model.id))
        return departure.result

    def _call_off_departures(self, model: Model[S], carried: Iterable[Unit[S]]) -> None:
        """The model is wanted again: who waits for a version that now stays will not see it go."""
        staying = {*carried, *model.ready}
        error = ErrorRecord(Code.CANCELLED, f"model '{model.id}' was wanted again before it was unloaded")
        for departure in model.departures:
            if departure.units & staying:
                _resolve(departure.result, Outcome(model.id, error))
        model.departures = [departure for departure in model.departures if not departure.units & staying]

    def _withdraw(self, model: Model[S], error: ErrorRecord) -> None:
        """End the rollout of a model, if one runs, and put the model among those that are to go."""
        self.models.leaving[model.id] = model
        rollout = model.rollout
        if rollout is not None:
            for unit in rollout.units.values():
                self._give_up(model, unit, UNLOADED)
            self._settle(model, rollout, Outcome(model.id, error))
        model.failure = None

    def _suspend(self, model: Model[S], part: Model[S]) -> None:
        """Have a model go because a model that it uses goes; it comes back with it."""
        model.blocked = True
        error = ErrorRecord(Code.UNAVAILABLE, f"model '{model.id}' was not loaded: its step '{part.id}' is being unloaded")
        self._withdraw(model, error)

    def _sweep_soon(self) -> None:
        if self.models.leaving:
            self._works.loop.call_soon(self._sweep)

    def _sweep(self) -> None:
        """Retire the models that are to go, as far as nothing that uses them is left."""
        ahead = list(self.models.leaving.values())
        while ahead:
            model = ahead.pop()
            users = self.models.using(model)
            for user in {*self.models.waiting(model), *(user for user in users if user.ready and not user.rollout)}:
                if user.id not in self.models.leaving:
                    self._suspend(user, model)
                    ahead.append(user)
            if not users:
                self._retire(model)

    def _retire(self, model: Model[S]) -> None:
        self.models.leaving.pop(model.id, None)
        ready = model.ready
        for unit in ready:
            self._enter(model, unit, State.DRAINING)
        if ready:
            self._publish(model, ())
        self._drain(model, ready)

    def _answer(self, outcome: Outcome) -> asyncio.Future[Outcome]:
        answer: asyncio.Future[Outcome] = self._works.loop.create_future()
        answer.set_result(outcome)
        return answer


def _resolve(result: asyncio.Future[Outcome], outcome: Outcome) -> None:
    if not result.done():
        result.set_result(outcome)
