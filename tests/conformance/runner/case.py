"""Cases as they stand in the files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml
from attrs import frozen

try:
    from yaml import CSafeLoader as Loader
except ImportError:  # libyaml is optional
    from yaml import SafeLoader as Loader  # type: ignore[assignment]

Step = dict[str, Any]
"""One step of a case: what to do, and under `expect` what was recorded."""

Seen = dict[str, Any]
"""What was observed in a step."""


LABELLED = ("http", "grpc", "wait_until", "join", "stop", "signal", "file", "shm_read")


def label(step: Step) -> str:
    """A step in a few words, such as `http GET /v2`."""
    kind = next((kind for kind in LABELLED if kind in step), next(iter(step)))
    return f"{kind} {step[kind]}" if isinstance(step[kind], str) else kind


class CaseError(Exception):
    """A file of cases, differences or expectations is wrong."""


@frozen
class Case:
    """One recorded case; `data` is as in the file."""

    area: str
    name: str
    file: Path
    data: dict[str, Any]

    @property
    def full_name(self) -> str:
        return f"{self.area}/{self.name}"

    @property
    def lib(self) -> Path:
        """The folder of files that several cases use."""
        return self.file.parent / "lib"

    @property
    def steps(self) -> list[Step]:
        steps: list[Step] = self.data.get("steps", [])
        return steps


def read_yaml(file: Path) -> Any:
    """A YAML file in plain values, nothing shared between two places."""
    with file.open(encoding="utf-8") as source:
        return json.loads(json.dumps(yaml.load(source, Loader=Loader)))


def read_cases(paths: Iterable[Path]) -> list[Case]:
    """All cases of the files and folders, in order."""
    cases = [
        Case(document["area"], data["name"], file, data)
        for file in _files(paths)
        for document in [read_yaml(file)]
        for data in document["cases"]
    ]
    names = [case.full_name for case in cases]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise CaseError(f"two cases are called {', '.join(sorted(twice))}")
    return cases


def _files(paths: Iterable[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            yield from sorted(one for one in path.rglob("*.yaml"))
        else:
            yield path
