"""From one servable to the next where only the instance groups change: the instances that both have go on."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import evolve

from moorage._execution.crew import Member
from moorage._execution.placement import Post, posts
from moorage._execution.servable import Servable
from moorage._execution.warmup import samples
from moorage.config.schema import InstanceGroup


def renewed(old: Servable, groups: tuple[InstanceGroup, ...]) -> Servable:
    """A servable with these instance groups (normalised) that shares with `old` whatever both have. Raises as a load does."""
    config = evolve(old.config, instance_group=groups)
    old.crew.join()
    try:
        kept, missing = match(old.members, posts(config))
        fresh = old.crew.hire(missing, config, samples(config, old.crew.files.folder) if missing else (), waiting=True)
    except BaseException:
        old.crew.leave()
        raise
    return Servable(
        config,
        old.version,
        shown=evolve(old.shown, instance_group=groups),
        crew=old.crew,
        members=[*kept, *fresh],
        labels=old.labels,
        recorders=old.recorders,
        continues=(old, fresh),
    )


def match(members: Iterable[Member], wanted: Iterable[Post]) -> tuple[list[Member], list[Post]]:
    """The instances that are at one of the wanted posts, and the posts that are left."""
    there = list(members)
    kept: list[Member] = []
    missing: list[Post] = []
    for post in wanted:
        member = next((member for member in there if member.post == post), None)
        if member is None:
            missing.append(post)
        else:
            there.remove(member)
            kept.append(member)
    return kept, missing
