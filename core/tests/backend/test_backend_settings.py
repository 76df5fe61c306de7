"""What a model's parameters and `--backend-config` say."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.backend import LoadContext, Placement, Settings, available_cores, threads_for_each
from moorage.config.schema import InstanceKind, ModelConfig, Parameter
from moorage.errors import ConfigError

words = st.text(st.characters(categories=["L", "N"]), max_size=5)


def context(*kinds: InstanceKind, server: dict[str, str] | None = None, **own: str) -> LoadContext:
    config = ModelConfig(name="m", parameters={name: Parameter(text) for name, text in own.items()})
    places = tuple(Placement(f"m_{number}", kind) for number, kind in enumerate(kinds))
    return LoadContext("m", 1, config, Path("m/1"), Path("m"), "model", placements=places, backend_config=server or {})


def settings(server: dict[str, str] | None = None, **own: str) -> Settings:
    return Settings.of(context(server=server, **own))


@given(own=words, server=words)
def test_the_model_comes_before_the_server(own: str, server: str) -> None:
    found = settings({"A": server}, A=own)
    assert found.text("A", "neither") == (own or server or "neither")
    assert found.of_server().text("A", "neither") == (server or "neither")
    assert found.of_model().text("A", "neither") == (own or "neither")


def test_all_that_is_written() -> None:
    assert settings({"A": "1", "B": "2"}, B=" 3 ", C=" ").given() == {"A": "1", "B": "3"}


@pytest.mark.parametrize(
    "text, value", [("true", True), ("ON", True), ("Yes", True), ("1", True), ("0", False), ("off", False)]
)
def test_switches(text: str, value: bool) -> None:
    assert settings(A=text).flag("A", not value) is value
    assert settings(A=text).switch("A") is value


def test_what_is_not_written_is_the_default() -> None:
    none = settings()
    assert (none.number("A", 7), none.fraction("A", 0.25), none.flag("A", True), none.switch("A")) == (7, 0.25, True, None)
    assert none.choice("A", ("x", "y"), "y") == "y"


@given(st.integers(-5, 5), st.integers(-5, 5))
def test_numbers_have_a_least_value(number: int, least: int) -> None:
    found = settings(A=str(number))
    assert found.number("A", 0, least=None) == number
    if number >= least:
        assert found.number("A", 0, least=least) == number
    else:
        with pytest.raises(ConfigError, match=rf"from {least} up"):
            found.number("A", 0, least=least)


@pytest.mark.parametrize(
    "ask, wanted",
    [
        (lambda found: found.number("A", 0), "a whole number from 0 up"),
        (lambda found: found.fraction("A"), "a number from 0 to 1"),
        (lambda found: found.flag("A"), "true or false"),
        (lambda found: found.choice("A", ("x", "y"), "y"), "one of x, y"),
    ],
)
@pytest.mark.parametrize("server, own, place", [({}, {"A": "much"}, "parameters.A"), ({"A": "much"}, {}, "--backend-config.A")])
def test_a_fault_names_the_setting_and_its_place(
    ask: object, wanted: str, server: dict[str, str], own: dict[str, str], place: str
) -> None:
    assert callable(ask)
    with pytest.raises(ConfigError) as caught:
        ask(settings(server, **own))
    (fault,) = caught.value.faults
    assert (fault.field, fault.message, fault.advice) == (place, f"'much' is not {wanted}", f"write {wanted}")
    assert "'m'" in str(caught.value)


def test_threads_are_divided_among_the_instances_on_the_cpu() -> None:
    cpu, gpu = InstanceKind.KIND_CPU, InstanceKind.KIND_GPU
    cores = available_cores()
    assert threads_for_each(context(cpu)) == threads_for_each(context(cpu, gpu, gpu)) == cores
    assert threads_for_each(context(*[cpu] * cores)) == threads_for_each(context(*[cpu] * cores * 4)) == 1
