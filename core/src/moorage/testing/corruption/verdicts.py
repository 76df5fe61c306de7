"""What became of a trial, and the report of many."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Sequence

from attrs import frozen


class Outcome(enum.Enum):
    """How a trial ended. Only the first two are as they should be."""

    ANSWERED = "answered"
    REFUSED = "refused with an error that names the model and a cause"
    UNCLEAR = "refused with an error that does not name the model, or says no cause"
    CHANGED = "answered otherwise than before"
    HARMED = "another model of the server answers otherwise than before"
    HUNG = "had not ended when its time was up"
    CRASHED = "ended the process"


GOOD = frozenset({Outcome.ANSWERED, Outcome.REFUSED})

_ADVICE = {
    Outcome.UNCLEAR: (
        "translate the framework's exceptions into moorage.errors where they enter (ModelError for a file that cannot be "
        "loaded), with the model's name, the file, and what the framework said"
    ),
    Outcome.CHANGED: (
        "read the files into memory, or into a private copy, when the model is loaded: a memory map of a file in the "
        "repository shows what happens to it later"
    ),
    Outcome.HARMED: "keep the state of models apart: what one file says must not reach another model",
    Outcome.HUNG: "check sizes and counts of the file before the framework acts on them, or load with its own time limit",
    Outcome.CRASHED: (
        "check what the framework takes for granted before it gets the file, read files into memory instead of mapping them, "
        "or report it to the framework and refuse such files"
    ),
}


@frozen
class Verdict:
    """How one trial ended. `trial` says what was tried, `message` is the error's text or what the process wrote last."""

    trial: str
    outcome: Outcome
    stage: str = ""
    """Where it ended: "load", "infer" or "unload"."""
    message: str = ""

    def __str__(self) -> str:
        place = f" at {self.stage}" if self.stage else ""
        return f"{self.trial}: {self.outcome.value}{place}: {self.message}".rstrip(": ")


@frozen
class Report:
    """The verdicts of all trials, in their order."""

    verdicts: Sequence[Verdict]

    def bad(self) -> list[Verdict]:
        """Those that are not as they should be."""
        return [verdict for verdict in self.verdicts if verdict.outcome not in GOOD]

    def count(self, outcome: Outcome) -> int:
        """How many trials ended so."""
        return Counter(verdict.outcome for verdict in self.verdicts)[outcome]

    def explain(self, shown: int = 10) -> str:
        """Text for a failing test: what went wrong, and what the author of a backend can do about it."""
        bad = self.bad()
        lines = [f"{len(bad)} of {len(self.verdicts)} trials went wrong:"]
        lines += [f"  - {verdict}" for verdict in bad[:shown]]
        lines += [f"  … and {len(bad) - shown} more"] if len(bad) > shown else []
        outcomes = dict.fromkeys(verdict.outcome for verdict in bad)
        return "\n".join([*lines, *(f"what to do where it {outcome.value}: {_ADVICE[outcome]}" for outcome in outcomes)])
