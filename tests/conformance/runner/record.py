"""Writes what a reference server did back into the case files, in a fixed layout."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from conformance.runner.case import Case, read_yaml

OUTLINE_KEYS = ("steps", "cases", "http", "grpc", "fs", "why")


class Dumper(yaml.SafeDumper):
    """Short values on one line, steps one a line, long texts as blocks."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _inline(value: Any) -> bool:
    if isinstance(value, list):
        return all(map(_inline, value)) and len(json.dumps(value, default=str)) < 110
    if isinstance(value, dict):
        return all(map(_inline, value.values())) and len(json.dumps(value, default=str)) < 90
    return not (isinstance(value, str) and "\n" in value)


def _list(dumper: Dumper, value: list[Any]) -> yaml.Node:
    return dumper.represent_sequence("tag:yaml.org,2002:seq", value, flow_style=_inline(value))


def _mapping(dumper: Dumper, value: dict[str, Any]) -> yaml.Node:
    outline = any(key in value for key in OUTLINE_KEYS)
    return dumper.represent_mapping("tag:yaml.org,2002:map", value.items(), flow_style=not outline and _inline(value))


def _text(dumper: Dumper, value: str) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)


Dumper.add_representer(list, _list)
Dumper.add_representer(dict, _mapping)
Dumper.add_representer(str, _text)


def dump(document: Any) -> str:
    text: str = yaml.dump(document, Dumper=Dumper, sort_keys=False, width=118, allow_unicode=True)
    return re.sub(r"\n- name: ", "\n\n- name: ", text)


def write_back(recorded: Iterable[Case]) -> None:
    """Replace the recorded cases in their files; the other cases stay as they are."""
    by_file: dict[Path, dict[str, Case]] = {}
    for case in recorded:
        by_file.setdefault(case.file, {})[case.name] = case
    for file, cases in by_file.items():
        document = read_yaml(file)
        document["cases"] = [cases[one["name"]].data if one["name"] in cases else one for one in document["cases"]]
        fresh = file.with_name(file.name + ".tmp~")
        fresh.write_text(dump(document), encoding="utf-8")
        fresh.replace(file)
