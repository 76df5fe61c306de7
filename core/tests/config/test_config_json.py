"""Reading a configuration from JSON: as lenient as Triton, and clear about what it refuses."""

# ruff: noqa: E501 - a case is best read on one line
from __future__ import annotations

import math
from typing import Any

import pytest

from moorage.config import Position, parse_json, parse_text
from moorage.config.schema import (
    DynamicBatching,
    HistogramOptions,
    InstanceGroup,
    InstanceKind,
    MetricControl,
    ModelConfig,
    ModelInput,
    ModelMetrics,
    Parameter,
    QueuePolicy,
    SequenceBatching,
    Specific,
    StrategyDirect,
    VersionPolicy,
)
from moorage.errors import ConfigError, Fault
from moorage.types.datatype import DataType


def faults(source: Any) -> tuple[Fault, ...]:
    with pytest.raises(ConfigError) as caught:
        parse_json(source, file="m/config.json", model="m")
    assert "model 'm'" in str(caught.value)
    return caught.value.faults


X = ModelConfig(max_batch_size=4, input=(ModelInput("X", DataType.FP32, dims=(-1,)),))


@pytest.mark.parametrize(
    "text, expected",
    [
        ("{}", ModelConfig()),
        (' {"max_batch_size":4,"input":[{"name":"X","data_type":"TYPE_FP32","dims":[-1]}]}\n', X),
        ('{"max_batch_size":4,"input":{"name":"X","data_type":"type_fp32","dims":-1}}', X),
        ('{"maxBatchSize":"4","input":[{"name":"X","dataType":11,"dims":["-1"]}]}', X),
        ('{"max_batch_size":4.0,"input":[{"name":"X","data_type":"Type_Fp32","dims":[-1.0]}]}', X),
        ('\ufeff{"name": "x"}', ModelConfig(name="x")),
        ('{"name": null, "input": null, "dynamic_batching": null, "parameters": null}', ModelConfig()),
        ('{"name": "a\\u00e9\\n\\"\\\\"}', ModelConfig(name='aé\n"\\')),
        ('{"parameters": {"a": {"string_value": "1"}, "b": {}}}', ModelConfig(parameters={"a": Parameter("1"), "b": Parameter()})),
        ('{"version_policy": {"specific": {"versions": "3"}}}', ModelConfig(version_policy=VersionPolicy(Specific((3,))))),
        ('{"instance_group": [{"kind": "kind-cpu", "count": 2, "passive": "true"}]}',
         ModelConfig(instance_group=(InstanceGroup(kind=InstanceKind.KIND_CPU, count=2, passive=True),))),
        ('{"dynamic_batching": {"priority_queue_policy": {"1": {"max_queue_size": 4}}}}',
         ModelConfig(scheduling=DynamicBatching(priority_queue_policy={1: QueuePolicy(max_queue_size=4)}))),
        ('{"dynamic_batching": {"max_queue_delay_microseconds": 18446744073709551615}}',
         ModelConfig(scheduling=DynamicBatching(max_queue_delay_microseconds=2**64 - 1))),
        ('{"sequence_batching": {"direct": {"minimum_slot_utilization": "0.5"}}}',
         ModelConfig(scheduling=SequenceBatching(StrategyDirect(minimum_slot_utilization=0.5)))),
    ],
)  # fmt: skip
def test_accepted(text: str, expected: ModelConfig) -> None:
    assert parse_json(text).config == expected
    assert parse_json(text.encode()).config == expected


def test_json_says_the_same_as_text() -> None:
    from_json = parse_json('{"max_batch_size":4,"input":[{"name":"X","data_type":"TYPE_FP32","dims":[-1]}]}')
    from_text = parse_text('max_batch_size: 4 input { name: "X" data_type: TYPE_FP32 dims: -1 }')
    assert from_json.config == from_text.config
    assert from_json.given == from_text.given == {"max_batch_size", "input"}
    assert set(from_json.positions) == set(from_text.positions)


def test_an_object_is_read_like_its_text() -> None:
    assert parse_json({"max_batch_size": 4, "input": ({"name": "X", "data_type": "TYPE_FP32", "dims": (-1,)},)}).config == X
    assert parse_json({"name": "m", "input": None}).given == {"name"}


def test_numbers_that_json_has_no_literal_for() -> None:
    config = parse_json(
        '{"model_metrics": {"metric_control": {"histogram_options": {"buckets": ["-Infinity", 0, "NaN", Infinity]}}}}'
    ).config
    assert config.model_metrics is not None
    (control,) = config.model_metrics.metric_control
    low, zero, nan, high = control.metric_options.buckets  # type: ignore[union-attr]
    assert (low, zero, high) == (-math.inf, 0.0, math.inf)
    assert math.isnan(nan)


@pytest.mark.parametrize(
    "text, place, path, words",
    [
        ('{"inputs": []}', (1, 2), "inputs", 'no field "inputs" (write "input")'),
        ('{"input": [{\n "datatype": "FP32"}]}', (2, 2), "input[0].datatype", 'write "data_type"'),
        ('{"input": [{"shape": [1]}]}', (1, 13), "input[0].shape", 'write "dims"'),
        ('{"max_batch_size": true}', (1, 20), "max_batch_size", "true is not a whole number"),
        ('{"max_batch_size": 1.5}', (1, 20), "max_batch_size", "1.5 is not a whole number"),
        ('{"max_batch_size": "many"}', (1, 20), "max_batch_size", '"many" is not a whole number'),
        ('{"max_batch_size": [1]}', (1, 20), "max_batch_size", "a list is not a whole number"),
        ('{"max_batch_size": 2147483648}', (1, 20), "max_batch_size", "out of range"),
        ('{"max_batch_size": 1e400}', (1, 20), "max_batch_size", "inf is not a whole number"),
        ('{"max_batch_size": NaN}', (1, 20), "max_batch_size", "nan is not a whole number"),
        (f'{{"max_batch_size": {"9" * 5000}}}', (1, 20), "max_batch_size", "not a whole number"),
        ('{"input": {"dims": [1, null]}}', (1, 24), "input[0].dims[1]", "null is not a whole number"),
        ('{"input": {"data_type": "FP32"}}', (1, 25), "input[0].data_type", "write TYPE_FP32"),
        ('{"input": {"data_type": 99}}', (1, 25), "input[0].data_type", "99 is not a value"),
        ('{"input": {"data_type": true}}', (1, 25), "input[0].data_type", "true is not a value"),
        ('{"input": {"optional": 1}}', (1, 24), "input[0].optional", "neither true nor false"),
        ('{"name": 3}', (1, 10), "name", 'write "3"'),
        ('{"name": {}}', (1, 10), "name", "an object is not a string"),
        ('{"dynamic_batching": []}', (1, 22), "dynamic_batching", "a JSON object is wanted"),
        ('{"input": [[]]}', (1, 12), "input[0]", "a JSON object is wanted"),
        ('{"parameters": [1]}', (1, 16), "parameters", "takes a JSON object"),
        ('{"dynamic_batching": {"priority_queue_policy": {"x": {}}}}', (1, 49),
         "dynamic_batching.priority_queue_policy", 'the key "x" does not fit'),
        ('{"dynamic_batching": {"priority_queue_policy": {"1": {}, "01": {}}}}', (1, 58),
         "dynamic_batching.priority_queue_policy[1]", "given twice"),
        ('{"name": "a", "name": "b"}', (1, 15), "name", "given twice"),
        ('{"max_batch_size": 1, "maxBatchSize": 2}', (1, 23), "max_batch_size", "given twice"),
        ('{"dynamic_batching": {}, "sequence_batching": {}}', (1, 26), "sequence_batching", "exclude each other"),
        ("[]", (1, 1), "", "a JSON object is wanted"),
        ("", (1, 1), "", "ends too early"),
        ('{"name": "x"', (1, 13), "", "a comma or '}' is wanted"),
        ('{"name": "x",}', (1, 14), "", "a key in double quotes"),
        ("{'name': 'x'}", (1, 2), "", "a key in double quotes"),
        ('{"name" "x"}', (1, 9), "", 'no colon after "name"'),
        ('{"name": x}', (1, 10), "", "a JSON value is wanted"),
        ('{"name": "x}', (1, 10), "", "not closed"),
        ('{"name": "\\q"}', (1, 10), "", "not valid JSON"),
        ('{"input": [1 2]}', (1, 14), "", "a comma or ']' is wanted"),
        ("{} {}", (1, 4), "", "follows the end"),
        ('{"name": 01}', (1, 11), "", "a comma or '}'"),
        ('{"input": ' + "[" * 10_000, (1, 75), "", "nested too deeply"),
        (b'{"name": "\xff"}', (1, 11), "", "byte 0xff is not UTF-8"),
    ],
)  # fmt: skip
def test_refused(text: str | bytes, place: tuple[int, int], path: str, words: str) -> None:
    first = faults(text)[0]
    assert words in f"{first.message} ({first.advice})"
    assert (first.line, first.column) == place
    assert first.field == path


def test_all_wrong_keys_are_told_at_once() -> None:
    text = '{"inputs": [{"name": "X", "datatype": "FP32", "shape": [1]}], "input": {"datatype": "FP32", "shape": [1]}}'
    advice = [fault.advice for fault in faults(text)]
    assert advice == ['write "input"', 'write "data_type"', 'write "dims"']


def test_faults_of_an_object_have_no_place() -> None:
    (fault,) = faults({"max_batch_size": "x"})
    assert (fault.line, fault.field) == (0, "max_batch_size")
    assert faults({"max_batch_size": 10**400})


def test_the_place_of_every_field_is_known() -> None:
    parsed = parse_json('{\n "input": [\n  {"name": "x", "dims": [1, 0]}],\n "parameters": {"k": {"string_value": "v"}}}')
    places = parsed.positions
    assert places["input"] == Position(2, 2)
    assert places["input[0]"] == Position(3, 3)
    assert places["input[0].dims[1]"] == Position(3, 29)
    assert places['parameters["k"].string_value'] == Position(4, 23)


def test_a_metric_without_options_stays_without() -> None:
    config = parse_json('{"model_metrics": {"metric_control": [{}, {"histogram_options": {}}]}}').config
    assert config.model_metrics == ModelMetrics((MetricControl(), MetricControl(metric_options=HistogramOptions())))
