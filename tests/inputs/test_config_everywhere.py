"""Slips and template variables in every field of a configuration, however deep, in text and in JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.config import parse_json, parse_text
from moorage.config.fields import FieldSpec, Kind, MessageSpec, Shape, model_config_spec
from moorage.config.parsed import ParsedConfig
from moorage.errors import ConfigError, Fault

Path = tuple[FieldSpec, ...]
FORMS = ("text", "json")
GOOD = {Kind.INT: "1", Kind.FLOAT: "0.5", Kind.BOOL: "true", Kind.STRING: "words of text"}
INJECTED = '4\nbackend: "python"'


def paths(table: MessageSpec, above: Path = ()) -> Iterator[Path]:
    """Every field of a configuration, by the fields that lead to it."""
    for spec in table.fields:
        yield (*above, spec)
        if spec.message is not None:
            yield from paths(spec.map_value.message if spec.shape is Shape.MAP and spec.map_value.message else spec.message,
                             (*above, spec))  # fmt: skip


EVERY = [path for path in paths(model_config_spec()) if path[-1].name != "key"]
SCALARS = [path for path in EVERY if path[-1].message is None]
BLOCKS = [path for path in EVERY if path[-1].message is not None]
INTEGERS = [path for path in SCALARS if path[-1].kind is Kind.INT]


def text(path: Path, last: str) -> str:
    """The text of a configuration in which `last` stands where the last field of the path would."""
    if not path:
        return last
    first, *rest = path
    inner = text(tuple(rest), last)
    if first.shape is Shape.MAP:
        is_whole_value = first.map_value.message is None
        inner = f"key: {_key(first)} {inner if is_whole_value else f'value {{ {inner} }}'}"
    return f"{first.name} {{ {inner} }}"


def _key(spec: FieldSpec) -> str:
    return "1" if spec.map_key.kind is Kind.INT else '"k"'


def document(path: Path, name: str, value: Any) -> dict[str, Any]:
    """The same as an object for JSON: a member called `name` in place of the last field."""
    if not path:
        return {name: value}
    first, *rest = path
    if first.shape is Shape.MAP:
        key = _key(first).strip('"')
        return {first.name: {key: value if not rest and name == "value" else document(tuple(rest), name, value)}}
    return {first.name: document(tuple(rest), name, value)}


def read(form: str, path: Path, literal: str, variables: dict[str, str] | None = None) -> ParsedConfig:
    """A configuration whose only field is the last of the path; `literal` is what stands in the file."""
    *above, last = path
    if form == "text":
        return parse_text(text(tuple(above), f"{last.name}: {literal}"), variables=variables)
    whole = json.dumps(document(tuple(above), last.name, "THE VALUE")).replace('"THE VALUE"', literal)
    return parse_json(whole, variables=variables)


def refused(form: str, path: Path, literal: str, variables: dict[str, str] | None = None) -> Fault:
    with pytest.raises(ConfigError) as caught:
        read(form, path, literal, variables)
    first = caught.value.faults[0]
    assert first.line == 1
    assert first.column > 1
    return first


def good(spec: FieldSpec) -> str:
    return next(iter(spec.enum.by_name)) if spec.enum is not None else GOOD[spec.kind]


def quoted(form: str, spec: FieldSpec) -> str:
    """A literal that the field takes."""
    in_quotes = spec.kind is Kind.STRING or (form == "json" and spec.kind is Kind.ENUM)
    return f'"{good(spec)}"' if in_quotes else good(spec)


def dotted(paths: Sequence[Path]) -> list[str]:
    return [".".join(spec.name for spec in path) for path in paths]


def test_the_paths_reach_all_depths() -> None:
    assert {1, 2, 3, 4} <= {len(path) for path in SCALARS}
    assert len(INTEGERS) > 20


@pytest.mark.parametrize("form", FORMS)
def test_a_variable_is_refused_by_name_wherever_a_value_stands(form: str) -> None:
    for path in EVERY:
        for variable in ("${SOME_NAME}", "${ SOME_NAME }", *(("$SOME_NAME", "{{ SOME_NAME }}") if form == "text" else ())):
            assert refused(form, path, variable).message == "unresolved template variable SOME_NAME", dotted([path])


def test_a_variable_in_place_of_a_name_is_one_fault() -> None:
    for words in ("${V}: 3", "$V: [ 1, 2 ]", "{{ V }}: { a: 1 }", "${V}", '${V}: "x"'):
        with pytest.raises(ConfigError) as caught:
            parse_text(f'name: "m"\n{words}\nbackend: "b"', variables={"V": "max_batch_size"})
        (fault,) = caught.value.faults
        assert (fault.message, fault.line) == ("unresolved template variable V", 2)


@pytest.mark.parametrize("form", FORMS)
def test_a_variable_that_is_set_is_one_value_wherever_it_stands(form: str) -> None:
    for path in SCALARS:
        spec = path[-1]
        plain = read(form, path, quoted(form, spec))
        assert read(form, path, "${V}", {"V": good(spec)}).config == plain.config, dotted([path])
        if form == "json" or spec.kind is Kind.STRING:
            assert read(form, path, '"${V}"', {"V": good(spec)}).config == plain.config, dotted([path])


@pytest.mark.parametrize("form", FORMS)
def test_a_variable_never_adds_a_field(form: str) -> None:
    for path in EVERY:
        assert "V" in refused(form, path, "${V}", {"V": INJECTED}).message, dotted([path])
        for value in ('4 backend: "python"', '4, "backend": "python"', "4 }", '"x" } backend: "python" {'):
            if path[-1].kind is Kind.STRING:
                parsed = read(form, path, "${V}", {"V": value})
                assert parsed.config == read(form, path, json.dumps(value)).config, dotted([path])
            else:
                assert "V" in refused(form, path, "${V}", {"V": value}).message, dotted([path])


@pytest.mark.parametrize("form", FORMS)
def test_a_number_out_of_range_is_refused_in_every_field(form: str) -> None:
    for path in INTEGERS:
        spec = path[-1]
        for number in (spec.low - 1, spec.high + 1, 10**30, -(10**30)):
            assert "out of range" in refused(form, path, str(number)).message, dotted([path])
        for literal in ("1.5", "many") if form == "text" else ("1.5", '"many"', "true", "{}"):
            assert refused(form, path, literal).message, dotted([path])
        assert read(form, path, str(spec.high)).config != read(form, path, "1").config


SLIPS = st.sampled_from(["drop", "double", "swap", "plural", "dash", "case"])


def slip(name: str, kind: str, at: int) -> str:
    at %= max(len(name) - 1, 1)
    match kind:
        case "drop":
            return name[: at + 1] + name[at + 2 :]
        case "double":
            return name[: at + 1] + name[at:]
        case "swap":
            return name[:at] + name[at : at + 2][::-1] + name[at + 2 :]
        case "plural":
            return name + "s"
        case "dash":
            return name.replace("_", "", 1)
        case _:
            return name.title() if name.islower() else name.lower()


@settings(deadline=None, max_examples=300)
@given(st.sampled_from(EVERY), SLIPS, st.integers(0, 40), st.sampled_from(FORMS))
def test_a_slip_in_any_name_is_answered_with_the_name(path: Path, kind: str, at: int, form: str) -> None:
    *above, last = path
    wrong = slip(last.name, kind, at)
    table = above[-1].message if above else model_config_spec()
    if above and above[-1].shape is Shape.MAP:
        table = above[-1].map_value.message
    if table is None or len(last.name) < 4 or wrong in table.by_name or wrong in table.by_json_name:
        return
    in_json = json.dumps(document(tuple(above), wrong, None))
    with pytest.raises(ConfigError) as caught:
        parse_text("\n" + text(tuple(above), f"{wrong} {{ }}")) if form == "text" else parse_json("\n" + in_json)
    fault = caught.value.faults[0]
    assert fault.line == 2
    assert wrong in fault.message
    assert fault.field.endswith(wrong)
    suggested = fault.advice.removeprefix("write ").strip('"')
    assert suggested == last.name, fault
