"""A configuration is the same in all its forms: object, protobuf, text, JSON."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from google.protobuf import text_format
from google.protobuf.json_format import MessageToDict
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.config import from_proto, parse_json, parse_text, to_json, to_proto, to_text
from moorage.config.proto import message_class
from moorage.config.schema import (
    Control,
    ControlInput,
    DataFile,
    HistogramOptions,
    InitialState,
    MetricControl,
    ModelConfig,
    ModelInput,
    ModelMetrics,
    RandomData,
    RateLimiter,
    RateLimiterResource,
    SequenceBatching,
    State,
    TensorReshape,
    VersionPolicy,
    Warmup,
    WarmupInput,
    ZeroData,
)
from moorage.errors import ConfigError

EACH = settings(deadline=None, max_examples=40)


@EACH
@given(data=st.data())
def test_protobuf_and_back(configs: st.SearchStrategy[ModelConfig], data: st.DataObject) -> None:
    config = data.draw(configs)
    message = to_proto(config)
    assert from_proto(message) == config
    assert from_proto(type(message).FromString(message.SerializeToString())) == config


@EACH
@given(data=st.data())
def test_text_and_back(configs: st.SearchStrategy[ModelConfig], data: st.DataObject) -> None:
    config = data.draw(configs)
    text = to_text(config)
    assert parse_text(text).config == config
    theirs = text_format.Parse(text, message_class("ModelConfig")())
    assert from_proto(theirs) == config


@EACH
@given(data=st.data())
def test_text_of_protobuf_is_read(configs: st.SearchStrategy[ModelConfig], data: st.DataObject) -> None:
    config = data.draw(configs)
    short = data.draw(st.booleans())
    text = text_format.MessageToString(to_proto(config), use_short_repeated_primitives=short, pointy_brackets=short)
    assert parse_text(text).config == config


@EACH
@given(data=st.data())
def test_json_and_back(configs: st.SearchStrategy[ModelConfig], data: st.DataObject) -> None:
    config = data.draw(configs)
    shown = to_json(config)
    assert parse_json(shown).config == config
    assert parse_json(json.dumps(shown, allow_nan=False)).config == config


@EACH
@given(data=st.data())
def test_json_of_protobuf_is_read(configs: st.SearchStrategy[ModelConfig], data: st.DataObject) -> None:
    config = data.draw(configs)
    names = data.draw(st.booleans())
    assert parse_json(MessageToDict(to_proto(config), preserving_proto_field_name=names)).config == config


def without_strings(shown: Any) -> Any:
    """JSON of protobuf with the 64-bit integers as numbers, told by the fields that hold them."""
    wide = {"dims", "shape", "versions", "dim", "device_id", "model_version", "priority_levels", "default_priority_level"}
    if isinstance(shown, list):
        return [without_strings(one) for one in shown]
    if not isinstance(shown, dict):
        return shown
    out = {}
    for key, value in shown.items():
        if key in wide or key.endswith("_microseconds"):
            out[key] = [int(one) for one in value] if isinstance(value, list) else int(value)
        else:
            out[key] = without_strings(value)
    return out


FULL = ModelConfig(
    name="m",
    max_batch_size=2**31 - 1,
    version_policy=VersionPolicy(),
    input=(ModelInput(name="x", dims=(2**62, -1), reshape=TensorReshape()),),
    scheduling=SequenceBatching(
        control_input=(ControlInput("c", (Control(fp32_false_true=(0.0, 0.1)),)),),
        state=(State(initial_state=(InitialState(state_data=False), InitialState(state_data="f"))),),
    ),
    model_warmup=(
        Warmup(inputs={"z": WarmupInput(data=ZeroData()), "r": WarmupInput(data=RandomData())}),
        Warmup(inputs={"f": WarmupInput(data=DataFile("p"))}),
    ),
    model_metrics=ModelMetrics((MetricControl(metric_options=HistogramOptions((0.1, 1.0))),)),
)  # fmt: skip


def test_json_shows_what_protobuf_shows() -> None:
    theirs = MessageToDict(to_proto(FULL), preserving_proto_field_name=True, always_print_fields_with_no_presence=True)
    shown = to_json(FULL)
    assert shown == without_strings(theirs)
    assert list(shown["model_warmup"][0]["inputs"]["z"]) == ["data_type", "dims", "zero_data"]


def test_json_leaves_out_unset_messages_and_shows_every_default() -> None:
    shown = to_json(ModelConfig(name="m"))
    assert list(shown) == [
        "name", "platform", "backend", "runtime", "max_batch_size", "input", "output", "batch_input", "batch_output",
        "instance_group", "default_model_filename", "cc_model_filenames", "metric_tags", "parameters", "model_warmup",
    ]  # fmt: skip
    assert shown["input"] == []
    assert shown["parameters"] == {}


def test_json_never_holds_what_json_cannot() -> None:
    config = ModelConfig(
        model_metrics=ModelMetrics((MetricControl(metric_options=HistogramOptions((math.nan, math.inf, -math.inf))),))
    )
    shown = to_json(config)
    assert shown["model_metrics"]["metric_control"][0]["histogram_options"]["buckets"] == ["NaN", "Infinity", "-Infinity"]
    json.dumps(shown, allow_nan=False)


def test_a_renamed_attribute_keeps_its_name_on_the_wire() -> None:
    resource = RateLimiterResource(name="r", global_=True)
    assert to_json(ModelConfig(instance_group=()))["instance_group"] == []
    text = 'instance_group { rate_limiter { resources { name: "r" global: true } } }'
    group = parse_text(text).config.instance_group[0]
    assert group.rate_limiter == RateLimiter((resource,))
    assert to_json(ModelConfig(instance_group=(group,)))["instance_group"][0]["rate_limiter"]["resources"][0]["global"] is True


def test_an_unknown_enum_number_on_the_wire_is_refused() -> None:
    message = to_proto(ModelConfig(input=(ModelInput(name="x"),)))
    message.input[0].data_type = 77  # type: ignore[attr-defined]
    with pytest.raises(ConfigError, match=r"input\[0\]\.data_type: 77 is not a value"):
        from_proto(message)
