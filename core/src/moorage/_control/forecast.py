"""What would become of a model, from what serves to what the repositories hold: pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

import attrs
from attrs import frozen

from moorage._lifecycle.plan import decide
from moorage._lifecycle.transitions import State
from moorage._repository.spec import ModelSpec, VersionSpec
from moorage.config.schema import ModelConfig
from moorage.errors import ErrorRecord

INSTANCES = "instance_group"


@frozen
class Step:
    """What happens to a version, or to a model as a whole (`version` None).

    `action` is load, replace, update (instances are added or removed), unload, keep, or refuse.
    """

    model: str
    version: int | None
    action: str
    reason: str = ""


@frozen
class Held:
    """A version that serves, as the lifecycle would hold it."""

    serial: int
    version: int
    fingerprint: str
    identity: str
    state: State = State.READY
    claimed: bool = True


def of_model(
    name: str,
    wanted: ModelSpec | ErrorRecord,
    served: Collection[int],
    held: Iterable[Held],
    why: Callable[[VersionSpec], str],
) -> list[Step]:
    """The steps of one model of which the versions `served` serve, as `held`. `why` says what differs of a version."""
    if isinstance(wanted, ErrorRecord):
        kept = [Step(name, version, "keep", "what is in the repository cannot be loaded") for version in sorted(served)]
        return [Step(name, None, "refuse", wanted.message), *kept]
    made = decide(held, wanted, renew=True)
    steps = [Step(name, one.version, "keep") for one in made.carried]
    for spec in made.loads:
        if spec.version in served:
            steps.append(Step(name, spec.version, "replace", why(spec)))
        else:
            steps.append(Step(name, spec.version, "load"))
    steps += [Step(name, renewal.spec.version, "update", f"only {INSTANCES} differs") for renewal in made.renewals]
    gone = set(served) - wanted.versions.keys()
    steps += [Step(name, version, "unload", "it is not there, or the version policy does not pick it") for version in gone]
    return sorted(steps, key=lambda step: step.version or 0)


def of_absent(name: str, versions: Iterable[int], *, unreadable: bool) -> Iterator[Step]:
    """The steps of a model that is served and in no repository that could be read."""
    action, reason = ("keep", "a repository cannot be read") if unreadable else ("unload", "it is in no repository")
    return (Step(name, version, action, reason) for version in sorted(versions))


def of_served(name: str, wanted: ModelSpec | ErrorRecord, serving: ModelSpec | None) -> list[Step]:
    """The steps of a model of this server, whose versions `serving` serve or are on their way."""
    specs: Mapping[int, VersionSpec] = serving.versions if serving is not None else {}
    held = (Held(version, version, spec.fingerprint, spec.identity) for version, spec in specs.items())
    return of_model(name, wanted, specs.keys(), held, lambda spec: _change(specs[spec.version], spec))


def _change(old: VersionSpec, new: VersionSpec) -> str:
    before, after = old.parsed.config, new.parsed.config
    fields = [one.name for one in attrs.fields(ModelConfig) if getattr(before, one.name) != getattr(after, one.name)]
    return f"the configuration differs: {', '.join(fields)}" if fields else "the files differ"
