"""What the runner and its child process say to each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from attrs import field, frozen

from moorage.testing.corruption.verdicts import Outcome
from moorage.testing.model_case import Files

Inputs = Mapping[str, np.ndarray]


@frozen
class Start:
    """The first message: serve this repository, and a model that stays as it is."""

    repository: str
    intact: str
    config: str
    files: Files
    """As a load request takes them: paths below the model's folder."""
    inputs: Inputs
    backend_config: Sequence[str] = field(factory=tuple)
    memory: int = 0
    """Bytes of memory that the process may take once the intact model has answered; 0 for no limit."""


@frozen
class Trial:
    """Load these files as a model of this name, run it, unload it."""

    model: str
    config: str
    files: Files
    inputs: Inputs


@frozen
class Harm:
    """Load a model of the repository, run it, do something to its files, run it again."""

    model: str
    version_path: str
    how: str
    inputs: Inputs


@frozen
class Finding:
    """The answer to each message. Of a `Start` only `message` counts: empty if the intact model answers."""

    outcome: Outcome
    stage: str = ""
    message: str = ""
