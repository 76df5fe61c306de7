"""Which of the versions that are there are served."""

from __future__ import annotations

from collections.abc import Iterable

from moorage.config.schema import All, Latest, Specific, VersionPolicy


def select(policy: VersionPolicy | None, available: Iterable[int]) -> tuple[int, ...]:
    """The versions that the policy picks, ascending; versions that are missing are left out.

    Without a policy that is the greatest; a policy without a choice picks all, as Triton has it.
    """
    versions = sorted(set(available))
    if policy is None:
        return tuple(versions[-1:])
    match policy.choice:
        case All() | None:
            return tuple(versions)
        case Specific(versions=wanted):
            return tuple(version for version in versions if version in set(wanted))
        case Latest(num_versions=count):
            return tuple(versions[-count:]) if count > 0 else ()


def missing(policy: VersionPolicy | None, available: Iterable[int]) -> tuple[int, ...]:
    """The versions that the policy names but that are not there, ascending."""
    if policy is None or not isinstance(policy.choice, Specific):
        return ()
    return tuple(sorted(set(policy.choice.versions) - set(available)))
