"""How many of the requests that wait make the next batch."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from attrs import frozen


class Cut(NamedTuple):
    """Two places where the requests can be cut, as numbers of requests from the front."""

    preferred: int
    """Up to here they make a batch of a preferred size; 0 if there is none."""
    fitting: int
    """Up to here they fit into one batch."""
    complete: bool
    """No further request can make that batch better."""


@frozen
class BatchSizes:
    """The sizes that batches may have and are wanted to have, in rows."""

    most: int
    preferred: frozenset[int]

    def cut(self, rows: Iterable[int]) -> Cut:
        """Where to cut requests of so many rows each; the first is always taken.

        If the next request would go beyond the greatest preferred size, what is before it counts as preferred.
        """
        goal = max(self.preferred, default=self.most)
        total = best = count = 0
        for size in rows:
            if count and total + size > goal and not best:
                best = count
            if count and total + size > self.most:
                return Cut(best, count, complete=True)
            total += size
            count += 1
            if total in self.preferred:
                best = count
        return Cut(best, count, complete=total >= goal)
