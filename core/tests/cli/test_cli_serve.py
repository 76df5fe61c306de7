"""`moorage serve`: every option can be given as a flag and as a variable, and what is wrong is named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import click
import pytest
from click.testing import CliRunner, Result

from moorage._app.flags import Flag, name_of, variable_of, without_effect
from moorage._app.options import ServerOptions
from moorage._app.protocols import metrics_options
from moorage._cli.options import server_options
from moorage._server.http import HttpOptions
from moorage.errors import InvalidArgument

FIELDS: tuple[attrs.Attribute[Any], ...] = attrs.fields(ServerOptions)
Parse = Callable[..., Result]


@pytest.fixture
def parsed() -> list[ServerOptions]:
    """The options that `parse` made of its arguments."""
    return []


@pytest.fixture
def parse(parsed: list[ServerOptions]) -> Parse:
    """Read a command line as `serve` does, and start nothing."""

    @server_options
    @click.command()
    def command(**given: Any) -> None:
        parsed.append(ServerOptions(**{name: value for name, value in given.items() if value is not None}))

    def run(*arguments: str, **variables: str) -> Result:
        return CliRunner().invoke(command, list(arguments), env=variables)

    return run


def sample(field: attrs.Attribute[Any]) -> tuple[str, Any]:
    """A value that is not the default, as text and as the option holds it."""
    flag = Flag.of(field)
    if flag.choices:
        return flag.choices[-1], flag.choices[-1]
    if flag.multiple:
        return "one", ("one",)
    if isinstance(field.default, bool):
        return str(not field.default).lower(), not field.default
    if isinstance(field.default, int | float):
        return str(field.default + 1), field.default + 1
    return "something", "something"


def test_without_arguments_all_is_as_the_options_say(parse: Parse, parsed: list[ServerOptions]) -> None:
    assert parse().exit_code == 0
    assert parsed == [ServerOptions()]


@pytest.mark.parametrize("field", FIELDS, ids=name_of)
def test_an_option_can_be_given_as_a_flag(field: attrs.Attribute[Any], parse: Parse, parsed: list[ServerOptions]) -> None:
    text, value = sample(field)
    for name in (name_of(field), *Flag.of(field).aliases):
        done = parse(name if Flag.of(field).switch else f"{name}={text}")
        assert done.exit_code == 0, done.output
        assert parsed.pop() == ServerOptions(**{field.name: value})


@pytest.mark.parametrize("field", FIELDS, ids=name_of)
def test_an_option_can_be_given_as_a_variable(field: attrs.Attribute[Any], parse: Parse, parsed: list[ServerOptions]) -> None:
    text, value = sample(field)
    done = parse(**{variable_of(field): text})
    assert done.exit_code == 0, done.output
    assert parsed == [ServerOptions(**{field.name: value})]


def test_a_flag_wins_over_its_variable(parse: Parse, parsed: list[ServerOptions]) -> None:
    parse("--http-port=9", MOORAGE_HTTP_PORT="8")
    assert parsed[0].http_port == 9


def test_a_variable_holds_several_values_with_spaces_between(parse: Parse, parsed: list[ServerOptions]) -> None:
    parse(MOORAGE_MODEL_REPOSITORY="/srv/models s3://bucket:9000/models")
    assert parsed[0].model_repository == ("/srv/models", "s3://bucket:9000/models")


@pytest.mark.parametrize("text", ["maybe", "2", ""])
def test_a_wrong_boolean_names_flag_and_variable(parse: Parse, text: str) -> None:
    done = parse(f"--allow-http={text}")
    assert done.exit_code == 2
    assert f"'--allow-http' (or MOORAGE_ALLOW_HTTP): '{text}' is neither true nor false" in done.output


def test_an_unknown_flag_is_refused_with_what_comes_close(parse: Parse) -> None:
    done = parse("--http-prot=1")
    assert done.exit_code == 2
    assert "--http-prot" in done.output
    assert "--http-port" in done.output


@pytest.mark.parametrize(
    "flag, advice",
    [
        ("--http-port=99999", "from 0 to 65535"),
        ("--grpc-port=-1", "from 0 to 65535"),
        ("--model-load-thread-count=0", "from 1 up"),
        ("--exit-timeout-secs=-1", "from 0 up"),
        ("--repository-poll-secs=-0.5", "from 0 up"),
    ],
)
def test_a_number_out_of_range_names_the_flag(moorage: Callable[..., Result], flag: str, advice: str) -> None:
    done = moorage("serve", "--model-repository=nowhere", flag)
    assert done.exit_code == 2
    assert f"{flag}: write a number {advice}" in done.output


def test_a_repository_is_needed(moorage: Callable[..., Result]) -> None:
    done = moorage("serve")
    assert done.exit_code == 2
    assert "--model-repository=PATH" in done.output


def test_the_help_shows_each_flag_and_its_default(moorage: Callable[..., Result]) -> None:
    shown = moorage("serve", "--help").output
    missing = [name for field in FIELDS for name in (name_of(field), *Flag.of(field).aliases) if name not in shown]
    assert not missing
    assert "--allow-grpc true|false" in shown
    assert "[default: true]" in shown


@pytest.mark.parametrize(
    ("argument", "name", "value"),
    [
        ("--model-control-mode=EXPLICIT", "model_control_mode", "explicit"),
        ("--grpc-infer-response-compression-level=HIGH", "grpc_infer_response_compression_level", "high"),
        ("--log-format=iso8601", "log_format", "ISO8601"),
        ("--log-verbose=true", "log_verbose", 1),
        ("--log-verbose=False", "log_verbose", 0),
        ("--log-verbose=3", "log_verbose", 3),
        ("--allow-http=off", "allow_http", False),
        ("--exit-on-error=0", "exit_on_error", False),
        ("--rate-limit=OFF", "rate_limit", "off"),
        ("--strict-model-config=true", "auto_complete", False),
        ("--disable-auto-complete-config", "auto_complete", False),
        ("--strict-model-config=false", "auto_complete", True),
    ],
)
def test_values_may_be_written_as_for_triton(
    argument: str, name: str, value: object, parse: Parse, parsed: list[ServerOptions]
) -> None:
    assert parse(argument).exit_code == 0
    assert getattr(parsed[0], name) == value


def test_what_is_missing_can_only_be_switched_off(parse: Parse) -> None:
    for flag in ("--rate-limit=execution_count", "--allow-client-shm=true", "--log-verbose=many"):
        done = parse(flag)
        assert done.exit_code == 2
        assert flag.partition("=")[0] in done.output


def test_flags_without_effect_are_told() -> None:
    options = ServerOptions(trace_level=("OFF",), http_thread_count="4", http_port=9)
    assert [flag for flag, _ in without_effect(options)] == ["--http-thread-count", "--trace-level"]


NUMBERS = [field for field in FIELDS if type(field.default) in (int, float)]


@pytest.mark.parametrize("field", NUMBERS, ids=lambda field: field.name)
@pytest.mark.parametrize("value", [10**20, -(10**20), -1])
def test_numbers_that_nothing_can_mean_are_refused(field: attrs.Attribute[Any], value: Any) -> None:
    with pytest.raises(InvalidArgument, match=f"^{name_of(field)}={value}: "):
        ServerOptions(**{field.name: value})


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_durations_are_numbers(value: float) -> None:
    with pytest.raises(InvalidArgument, match=r"^--repository-poll-secs="):
        ServerOptions(repository_poll_secs=value)


def test_a_pattern_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidArgument, match=r"^--http-header-forward-pattern '\(\(' is no regular expression: "):
        HttpOptions(header_forward_pattern="((")


def test_metrics_that_are_not_there_can_only_be_switched_off() -> None:
    off = ("histogram_latencies=false", "counter_latencies=false", "summary_latencies=false")
    assert not metrics_options(ServerOptions(metrics_config=off)).latencies
    with pytest.raises(InvalidArgument, match="summary_latencies=true"):
        metrics_options(ServerOptions(metrics_config=("summary_latencies=true",)))
