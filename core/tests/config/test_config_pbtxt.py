"""Reading `config.pbtxt`: what is accepted, and what is said about what is not."""

from __future__ import annotations

import time

import pytest

from moorage.config import Position, parse_text
from moorage.config.schema import (
    All,
    DynamicBatching,
    InitialState,
    Latest,
    ModelConfig,
    ModelInput,
    Parameter,
    SequenceBatching,
    Specific,
    VersionPolicy,
    ZeroData,
)
from moorage.errors import ConfigError, Fault
from moorage.types.datatype import DataType


def read(text: str | bytes, **options: object) -> ModelConfig:
    return parse_text(text, **options).config  # type: ignore[arg-type]


def faults(text: str | bytes, **options: object) -> tuple[Fault, ...]:
    with pytest.raises(ConfigError) as caught:
        parse_text(text, file="m/config.pbtxt", model="m", **options)  # type: ignore[arg-type]
    assert "model 'm'" in str(caught.value)
    for fault in caught.value.faults:
        assert fault.file == "m/config.pbtxt"
        assert fault.line >= 1
        assert fault.column >= 1
    return caught.value.faults


K = {"K": Parameter("v")}


@pytest.mark.parametrize(
    "text, expected",
    [
        ("", ModelConfig()),
        ("  \n# nothing\n", ModelConfig()),
        ("max_batch_size: 8", ModelConfig(max_batch_size=8)),
        (
            'input { name: "a" data_type: TYPE_FP32 dims: 4 dims: 5 }',
            ModelConfig(input=(ModelInput("a", DataType.FP32, dims=(4, 5)),)),
        ),
        ('parameters: { key: "K", value: { string_value: "v" } }', ModelConfig(parameters=K)),
        ('parameters { key: "K" value { string_value: "v" } }', ModelConfig(parameters=K)),
        ('parameters { value { string_value: "v" } key: "K" }', ModelConfig(parameters=K)),
        (
            'parameters [ { key: "a" value { string_value: "1" } }, { key: "b" value { string_value: "2" } } ]',
            ModelConfig(parameters={"a": Parameter("1"), "b": Parameter("2")}),
        ),
        ('parameters { key: "a" }', ModelConfig(parameters={"a": Parameter()})),
        ('metric_tags { key: "a" value: "1" } metric_tags { key: "a" value: "2" }', ModelConfig(metric_tags={"a": "2"})),
        ("version_policy: { all { }}", ModelConfig(version_policy=VersionPolicy(All()))),
        ("version_policy: { specific: { versions: [1,3]}}", ModelConfig(version_policy=VersionPolicy(Specific((1, 3))))),
        ("version_policy < latest < num_versions: 2 > >", ModelConfig(version_policy=VersionPolicy(Latest(2)))),
        ("name: 'x'", ModelConfig(name="x")),
        ('name: "x"; backend: "python";', ModelConfig(name="x", backend="python")),
        ('name: "x", backend: "python",', ModelConfig(name="x", backend="python")),
        ('name: "a" \'b\'\n  "c"', ModelConfig(name="abc")),
        (r'name: "\x41\102\n\"\'\\\u00e9\t\?"', ModelConfig(name="AB\n\"'\\é\t?")),
        (r'name: "\xc3" "\xa9"', ModelConfig(name="é")),
        ('name: "# no comment"  # a comment\r\nbackend: "b"\r\n', ModelConfig(name="# no comment", backend="b")),
        ('\ufeffname: "x"', ModelConfig(name="x")),
        ("max_batch_size: 0x1F", ModelConfig(max_batch_size=31)),
        ("max_batch_size: 0XfF", ModelConfig(max_batch_size=255)),
        ("max_batch_size: 017", ModelConfig(max_batch_size=15)),
        ("max_batch_size: -0x1", ModelConfig(max_batch_size=-1)),
        ("max_batch_size: -2147483648", ModelConfig(max_batch_size=-(2**31))),
        ("input []", ModelConfig()),
        ("input { dims: [] }", ModelConfig(input=(ModelInput(),))),
        ("input { data_type: 11 optional: t }", ModelConfig(input=(ModelInput(data_type=DataType.FP32, optional=True),))),
        ("input { optional: False is_shape_tensor: 1 }", ModelConfig(input=(ModelInput(is_shape_tensor=True),))),
        ("dynamic_batching { }", ModelConfig(scheduling=DynamicBatching())),
        ("max_batch_size: 0 max_batch_size: 4", ModelConfig(max_batch_size=4)),
        (
            "dynamic_batching { max_queue_delay_microseconds: 18446744073709551615 }",
            ModelConfig(scheduling=DynamicBatching(max_queue_delay_microseconds=2**64 - 1)),
        ),
        ('name: "${HOME}"', ModelConfig(name="${HOME}")),
    ],
)
def test_accepted(text: str, expected: ModelConfig) -> None:
    assert read(text) == expected
    assert read(text.encode()) == expected


def test_members_of_a_oneof_that_are_plain_values() -> None:
    config = read('sequence_batching { state { initial_state { zero_data: true } initial_state { data_file: "f" } } }')
    assert isinstance(config.scheduling, SequenceBatching)
    assert config.scheduling.state[0].initial_state == (InitialState(state_data=True), InitialState(state_data="f"))
    warmup = read('model_warmup { inputs { key: "x" value { zero_data: true } } }').model_warmup[0]
    assert warmup.inputs["x"].data == ZeroData(enable=True)


@pytest.mark.parametrize("literal, value", [("1.5", 1.5), ("-.5", -0.5), ("1.5f", 1.5), ("1e3", 1000.0), ("inf", float("inf"))])
def test_numbers_with_a_fraction(literal: str, value: float) -> None:
    config = read(f"model_metrics {{ metric_control {{ histogram_options {{ buckets: {literal} }} }} }}")
    assert config.model_metrics is not None
    assert config.model_metrics.metric_control[0].metric_options.buckets == (value,)  # type: ignore[union-attr]


ITEM = '{ name: "a" data_type: TYPE_FP32 dims: 1 }'


@pytest.mark.parametrize(
    "text, place, path, words",
    [
        ("max_batch_size=8", (1, 15), "max_batch_size", "write max_batch_size: with a colon"),
        ("max_batchsize: 8", (1, 1), "max_batchsize", "no field max_batchsize (write max_batch_size)"),
        ('name "x"', (1, 6), "name", "no colon after name"),
        (f"input [\n  {ITEM}\n  {ITEM} ]", (3, 3), "input", "write a comma between the items"),
        (f"input [\n  {ITEM},\n]", (2, 45), "input", "comma after the last item"),
        ("input { dims: [ 1, 2, ] }", (1, 21), "input[0].dims", "remove the comma"),
        ("input { dims: [ 1 2 ] }", (1, 19), "input[0].dims", "write a comma between the items"),
        ('input { data_type: "TYPE_FP32" }', (1, 20), "input[0].data_type", "write TYPE_FP32 without quotes"),
        ('input { data_type: "FP32" }', (1, 20), "input[0].data_type", "write TYPE_FP32"),
        ("input { data_type: FP32 }", (1, 20), "input[0].data_type", "write TYPE_FP32"),
        ("input { data_type: type_fp32 }", (1, 20), "input[0].data_type", "write TYPE_FP32"),
        ("input { data_type: float32 }", (1, 20), "input[0].data_type", "write TYPE_FP32"),
        ("input { data_type: BYTES }", (1, 20), "input[0].data_type", "write TYPE_STRING"),
        ("input { data_type: 99 }", (1, 20), "input[0].data_type", "99 is not a value of data_type"),
        ("instance_group { kind: cpu }", (1, 24), "instance_group[0].kind", "write KIND_CPU"),
        ("instance_group { kind: KIND_GPUS }", (1, 24), "instance_group[0].kind", "write KIND_GPU"),
        ('input { dims: ["4"] }', (1, 16), "input[0].dims[0]", "write 4 without quotes"),
        ("max_batch_size: 8.0", (1, 17), "max_batch_size", "write 8"),
        ("max_batch_size: eight", (1, 17), "max_batch_size", "write a whole number"),
        ("max_batch_size: 08", (1, 17), "max_batch_size", "08 is not a whole number"),
        ("max_batch_size: 1_000", (1, 17), "max_batch_size", "1_000 is not a whole number"),
        ("max_batch_size: 2147483648", (1, 17), "max_batch_size", "from -2147483648 to 2147483647"),
        (f"max_batch_size: {'9' * 5000}", (1, 17), "max_batch_size", "out of range"),
        ("version_policy { latest { num_versions: -1 } }", (1, 41), "version_policy.latest.num_versions", "out of range"),
        ('name: "a"\nname: "b"', (2, 1), "name", "given twice"),
        ("dynamic_batching { }\ndynamic_batching { }", (2, 1), "dynamic_batching", "given twice"),
        (
            "version_policy: { all { } latest { num_versions: 2 } }",
            (1, 27),
            "version_policy.latest",
            "latest and all exclude each other",
        ),
        ("dynamic_batching { } sequence_batching { }", (1, 22), "sequence_batching", "exclude each other"),
        ("dynamic_batching {\n", (1, 18), "dynamic_batching", "'{' is never closed"),
        ('input [ { name: "a" ]', (1, 9), "input[0]", "'{' is never closed"),
        ("input { dims: [ 1, 2 }", (1, 15), "input[0].dims", "'[' is never closed"),
        ("input { dims: [ 1, 2 name: 'x' }", (1, 15), "input[0].dims", "'[' is never closed"),
        ("dynamic_batching { > }", (1, 20), "dynamic_batching", "a field name is wanted"),
        ("}", (1, 1), "", "a field name is wanted, not }"),
        ('name: "x',  (1, 7), "name", "not closed on its line"),
        ("name: x", (1, 7), "name", 'write "x"'),
        ("name:", (1, 6), "name", "name has no value"),
        (r'name: "\q"', (1, 7), "name", r"\q is not an escape sequence"),
        (r'name: "\xff"', (1, 7), "name", "the text has a fault"),
        (r'name: "\ud800"', (1, 7), "name", "is not a character"),
        ("input { optional: yes }", (1, 19), "input[0].optional", "write true"),
        ("name: [ 'x' ]", (1, 7), "name", "takes one value"),
        ("name { }", (1, 6), "name", "no colon"),
        ("version_policy: 3", (1, 17), "version_policy", "write version_policy { ... }"),
        ("version_policy { [inference.x]: 1 }", (1, 18), "version_policy", "a field name is wanted"),
        ("input { shape: [1] }", (1, 9), "input[0].shape", "write dims"),
        ("inputs { }", (1, 1), "inputs", "write input"),
        ('parameters { key: "a.b" value { strin_value: "" } }', (1, 33), 'parameters["a.b"].strin_value', "write string_value"),
        ("dynamic_batching { priority_queue_policy { key: 3 value { x: 1 } } }", (1, 59),
         "dynamic_batching.priority_queue_policy[3].x", "no field x"),
        ("max_batch_size: ${MAX_BATCH}", (1, 17), "max_batch_size", "unresolved template variable MAX_BATCH"),
        ("input { dims: [ ${A}, 1 ] }", (1, 17), "input[0].dims[0]", "unresolved template variable A"),
        ("${instances}", (1, 1), "", "unresolved template variable instances"),
        (b'name: "x"\nbackend: "\xff"', (2, 11), "", "byte 0xff is not UTF-8"),
    ],
)  # fmt: skip
def test_refused(text: str | bytes, place: tuple[int, int], path: str, words: str) -> None:
    first = faults(text)[0]
    assert (first.line, first.column) == place
    assert first.field == path
    assert words in f"{first.message} ({first.advice})"


def test_all_faults_are_found_in_the_order_of_the_file() -> None:
    text = """\
name: "m"
max_batchsize: 4
input [
  { name: "a" data_type: FP32 dims: [ 1, ] },
  { name: b data_type: TYPE_INT32 dims: [ "2" ] }
  { nme: "c" }
]
instance_group { count = 2, kind: KIND_GPU }
dynamic_batching { preferred_batch_size [ 4, 8 ]
"""
    found = faults(text)
    assert [(fault.line, fault.field) for fault in found] == [
        (2, "max_batchsize"),
        (4, "input[0].data_type"),
        (4, "input[0].dims"),
        (5, "input[1].name"),
        (5, "input[1].dims[0]"),
        (6, "input"),
        (6, "input[2].nme"),
        (8, "instance_group[0].count"),
        (9, "dynamic_batching"),
        (9, "dynamic_batching.preferred_batch_size"),
    ]


def test_one_fault_does_not_breed_others() -> None:
    for text in ('max_batchsize: 8 name: "x"', 'nme { a: [ { b: 1 } ] } name: "x"', 'nme [ { a: 1 }, { } ] name: "x"',
                 'nme: "a" "b" name: "x"', 'nme name: "x"', 'max_batch_size: { x: 1 } name: "x"', "name = 'x'"):  # fmt: skip
        assert len(faults(text)) == 1, text


def test_garbage_ends_in_a_bounded_number_of_faults() -> None:
    assert len(faults("? ! % " * 10_000)) == 100
    assert len(faults("[" * 100_000)) <= 100
    assert len(faults("input{" * 50_000)) <= 100


def test_the_place_of_every_field_is_known() -> None:
    parsed = parse_text(
        'name: "m"\ninput [\n  { name: "a" dims: [ 1,\n 2 ] }\n]\nparameters { key: "k" value { string_value: "v" } }'
    )
    places = parsed.positions
    assert places["name"] == Position(1, 1)
    assert places["input"] == Position(2, 1)
    assert places["input[0]"] == Position(3, 3)
    assert places["input[0].dims"] == Position(3, 15)
    assert places["input[0].dims[1]"] == Position(4, 2)
    assert places['parameters["k"].string_value'] == Position(6, 31)
    assert "output" not in places
    assert len(list(places)) == len(places)
    assert parsed.fault("input[0].data_type", "x").line == 3


def test_the_fields_that_the_user_gave_are_known_whatever_their_value() -> None:
    parsed = parse_text('max_batch_size: 0 dynamic_batching { } input { } parameters { key: "a.b" }')
    assert parsed.given == {"max_batch_size", "dynamic_batching", "input", "parameters"}


@pytest.mark.parametrize(
    "text, variables, expected",
    [
        ("max_batch_size: ${MAX_BATCH}", {"MAX_BATCH": "4"}, ModelConfig(max_batch_size=4)),
        ("max_batch_size: ${N}", {"N": " 0x10 "}, ModelConfig(max_batch_size=16)),
        ("name: ${NAME}", {"NAME": "a b"}, ModelConfig(name="a b")),
        ('name: "x_${NAME}_${NAME}"', {"NAME": '"y"'}, ModelConfig(name='x_"y"_"y"')),
        ("input { data_type: ${T} }", {"T": "TYPE_FP32"}, ModelConfig(input=(ModelInput(data_type=DataType.FP32),))),
    ],
)
def test_template_variables(text: str, variables: dict[str, str], expected: ModelConfig) -> None:
    assert read(text, variables=variables) == expected


@pytest.mark.parametrize(
    "text, variables, words",
    [
        ("max_batch_size: ${MAX_BATCH}", {}, "unresolved template variable MAX_BATCH"),
        ("max_batch_size: ${MAX_BATCH}", {"MAX_BATCH": '4\nbackend: "python"'}, "line break"),
        ("max_batch_size: ${MAX_BATCH}", {"MAX_BATCH": '4 backend: "python"'}, "not a single value"),
        ("max_batch_size: ${MAX_BATCH}", {"MAX_BATCH": ""}, "not a single value"),
        ("max_batch_size: ${MAX_BATCH}", {"MAX_BATCH": "many"}, "many is not a whole number"),
        ("max_batch_size: ${MAX_BATCH}", {"MAX_BATCH": "${MAX_BATCH}"}, "not a single value"),
        ('name: "${A}"', {"B": "1"}, "unresolved template variable A"),
        ("name: ${A}", {"A": 'x"\n'}, "line break"),
    ],
)
def test_template_variables_add_nothing_but_a_value(text: str, variables: dict[str, str], words: str) -> None:
    (fault,) = faults(text, variables=variables)
    assert words in fault.message
    assert fault.line == 1


def test_reading_is_quick() -> None:
    text = 'name: "m"\nbackend: "python"\nmax_batch_size: 8\n' + "\n".join(
        f'{io} [ {{ name: "{io}" data_type: TYPE_FP32 dims: [ -1, 4 ] }} ]' for io in ("input", "output")
    )
    parse_text(text)
    best = min(_seconds(text) for _ in range(20))
    assert best < 0.005


def _seconds(text: str) -> float:
    start = time.process_time()
    parse_text(text)
    return time.process_time() - start
