"""Files that are no configurations: what is said of them stays short, and takes no time."""

from __future__ import annotations

import pytest

from moorage.config import parse_text
from moorage.config.suggest import nearest_field
from moorage.errors import ConfigError, Fault


def test_thousands_of_faults_are_counted_not_listed() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_text(b"foo: 1\n" * 3000, file="f", model="m")
    shown = str(caught.value)
    assert shown.count("there is no field foo") <= 50
    assert shown.endswith(" more")


def test_long_words_are_cut() -> None:
    error = ConfigError([Fault("x" * 100_000, "config.pbtxt", field="y" * 100_000, advice="shorten it")], "m")
    assert len(str(error)) < 10_000
    assert "config.pbtxt" in str(error) and "shorten it" in str(error)


def test_nothing_is_guessed_for_a_word_that_is_no_name() -> None:
    assert nearest_field("backendd", ["backend"]) == "backend"
    assert nearest_field("backend" * 100_000, ["backend"]) == ""
