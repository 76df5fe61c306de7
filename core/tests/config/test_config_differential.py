"""Our reader and Google's take the same texts, and read the same from them."""

from __future__ import annotations

import re
from typing import Any

from google.protobuf import text_format
from google.protobuf.message import Message
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.config import parse_text, to_proto
from moorage.config.fields import FieldSpec, Kind, MessageSpec, Shape, model_config_spec
from moorage.config.proto import message_class
from moorage.errors import ConfigError

WORDS = [
    "{", "}", "[", "]", "<", ">", ":", ",", ";", "{ }", "[ ]", "name", "input", "all", "latest", "dims", "data_type", "key",
    "value", "parameters", "max_batch_size", "kind", '"a"', "'b'", '"\\x41\\102\\n"', '"\\xff"', "1", "0", "-1", "0x1F", "1.5",
    "1.5f", "1e3", ".5", "8.0", "inf", "nan", "-inf", "true", "t", "False", "TYPE_FP32", "FP32", "KIND_CPU", "4294967296",
    "2147483648", "-9223372036854775809", "1e39", "# note\n", "\n", "\r\n", "=", "?",
]  # fmt: skip


def google(text: str) -> Message | None:
    try:
        return text_format.Parse(text, message_class("ModelConfig")())
    except text_format.ParseError:
        return None


def ours(text: str) -> Message | str | None:
    """The message, None when the text is refused, "open" when only because of an enum number that the schema does not have.

    The schema's enums are closed: protobuf takes any number, Triton refuses it later.
    """
    try:
        return to_proto(parse_text(text).config)
    except ConfigError as error:
        numbers = [re.match(r"-?[0-9][0-9A-Fa-fx]* is not a value of", fault.message) for fault in error.faults]
        return "open" if all(numbers) else None


def assert_same(text: str) -> None:
    theirs, mine = google(text), ours(text)
    if mine == "open":
        return
    if theirs is None or not isinstance(mine, Message):
        assert (theirs, mine) == (None, None), text
        return
    assert mine.SerializeToString(deterministic=True) == theirs.SerializeToString(deterministic=True), text


@st.composite
def literals(draw: st.DrawFn, spec: FieldSpec) -> str:
    """A value of a field, in one of the ways to write it; now and then one that does not fit."""
    if draw(st.integers(0, 79)) == 79:
        return draw(st.sampled_from(WORDS))
    if spec.kind is Kind.INT:
        number = draw(st.sampled_from([spec.low, spec.high, 0, 1]) | st.integers(spec.low, spec.high))
        sign = "-" if number < 0 else ""
        return draw(st.sampled_from([str(number), f"{sign}0x{abs(number):x}", f"{sign}0{abs(number):o}"]))
    if spec.kind is Kind.FLOAT:
        return draw(st.floats().map(repr) | st.floats(0, 10).map(lambda one: f"{one}f"))
    if spec.enum is not None:
        return draw(st.sampled_from(sorted(spec.enum.by_name)) | st.sampled_from(sorted(map(str, spec.enum.by_number))))
    if spec.kind is Kind.BOOL:
        return draw(st.sampled_from(["true", "false", "t", "f", "True", "False", "0", "1"]))
    pieces = draw(
        st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\n\\"), max_size=4), min_size=1, max_size=2)
    )
    quote = draw(st.sampled_from("\"'"))
    return " ".join(f"{quote}{piece.replace(quote, chr(92) + quote)}{quote}" for piece in pieces)


@st.composite
def values(draw: st.DrawFn, spec: FieldSpec) -> str:
    if spec.message is None:
        return draw(literals(spec))
    opening, closing = draw(st.sampled_from([("{", "}"), ("<", ">")]))
    return f"{opening} {draw(bodies(spec.message))} {closing}"


@st.composite
def fields(draw: st.DrawFn, spec: FieldSpec) -> str:
    colon = draw(st.sampled_from([":", " : ", ""] if spec.kind is Kind.MESSAGE else [":", " : "]))
    end = draw(st.sampled_from(["", ",", ";", " # note\n", "\n"]))
    if spec.shape is not Shape.SINGLE and draw(st.booleans()):
        items = draw(st.lists(values(spec), max_size=3))
        return f"{spec.name}{colon} [ {' , '.join(items)} ]{end}"
    return f"{spec.name}{colon} {draw(values(spec))}{end}"


def bodies(table: MessageSpec) -> st.SearchStrategy[str]:
    if not table.fields:
        return st.just("")
    one: Any = st.sampled_from(table.fields).flatmap(fields)
    return st.lists(one, max_size=3).map(" ".join)


@settings(deadline=None, max_examples=40)
@given(bodies(model_config_spec()))
def test_texts_of_the_grammar(text: str) -> None:
    assert_same(text)


@settings(deadline=None, max_examples=40)
@given(bodies(model_config_spec()), st.data())
def test_texts_with_a_slip(text: str, data: st.DataObject) -> None:
    words = text.split(" ")
    for _ in range(data.draw(st.integers(1, 2))):
        at = data.draw(st.integers(0, len(words) - 1))
        change = data.draw(st.sampled_from(["drop", "double", "put"]))
        if change == "drop" and len(words) > 1:
            del words[at]
        else:
            words.insert(at, words[at] if change == "double" else data.draw(st.sampled_from(WORDS)))
    assert_same(" ".join(words))


@settings(deadline=None, max_examples=40)
@given(st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join))
def test_texts_of_any_words(text: str) -> None:
    assert_same(text)
