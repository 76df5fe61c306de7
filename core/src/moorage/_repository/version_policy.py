"""Which of the versions that are there are served."""

from __future__ import annotations

from collections.abc import Iterable

from moorage.config.schema import All, Latest, Specific, VersionPolicy


def select(policy: VersionPolicy | None, available: Iterable[int]) -> tuple[int, ...]:
    """The versions that the policy picks, ascending. Without a policy, the greatest; versions that are missing are left out."""
    versions = sorted(set(available))
    choice = policy.choice if policy is not None else None
    match choice:
        case All():
            return tuple(versions)
        case Specific(versions=wanted):
            return tuple(version for version in versions if version in set(wanted))
        case Latest(num_versions=count):
            return tuple(versions[-count:]) if count > 0 else ()
        case None:
            return tuple(versions[-1:])


def missing(policy: VersionPolicy | None, available: Iterable[int]) -> tuple[int, ...]:
    """The versions that the policy names but that are not there, ascending."""
    if policy is None or not isinstance(policy.choice, Specific):
        return ()
    return tuple(sorted(set(policy.choice.versions) - set(available)))
