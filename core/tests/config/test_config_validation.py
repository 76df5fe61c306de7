"""The rules beyond the grammar: one configuration, one fault each, with its place and what to write."""

# ruff: noqa: E501 - a case is best read on one line
from __future__ import annotations

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.config import KNOWN, backend_of, parse_json, parse_text, platforms_of, validate
from moorage.config.schema import ModelConfig
from moorage.config.validation.tensors import reshapes
from moorage.errors import Fault

INPUT = 'input [ { name: "X" data_type: TYPE_INT32 dims: [ 1 ] } ]'
OUTPUT = 'output [ { name: "Y" data_type: TYPE_FP32 dims: [ 4, -1 ] } ]'
FINE = f'backend: "python"\n{INPUT}\n{OUTPUT}\n'


def check(text: str, **options: object) -> list[Fault]:
    parsed = parse_text(text, file="m/config.pbtxt")
    found = validate(parsed.with_config(evolve(parsed.config, name="m")), **options)  # type: ignore[arg-type]
    assert all(fault.file == "m/config.pbtxt" and "'m'" in fault.message and fault.advice for fault in found), found
    return found


STEP = 'model_name: "one" input_map { key: "a" value: "X" } output_map { key: "b" value: "Y" }'
ENSEMBLE = f'platform: "ensemble"\n{INPUT}\n{OUTPUT}\nensemble_scheduling {{ step [ {{ %s }} ] }}'
CHAIN = f'{STEP} }}, {{ model_name: "two" input_map {{ key: "a" value: "%s" }} output_map {{ key: "b" value: "%s" }}'


@pytest.mark.parametrize(
    "text",
    [
        FINE,
        "",
        INPUT,
        FINE + INPUT,
        FINE + "max_batch_size: 0 dynamic_batching { }",
        FINE + "max_batch_size: 8 dynamic_batching { preferred_batch_size: [ 4, 8 ] }",
        FINE + "dynamic_batching { priority_levels: 2 default_priority_level: 2 priority_queue_policy { key: 2 value { } } }",
        FINE + "dynamic_batching { preserve_ordering: true default_queue_policy { timeout_action: DELAY } }",
        FINE + "version_policy { }",
        FINE + "version_policy { specific { versions: [ 0, 8 ] } }",
        FINE + "response_cache { enable: false } model_transaction_policy { decoupled: true }",
        FINE + "instance_group { kind: KIND_AUTO gpus: 0 }, instance_group { kind: KIND_GPU gpus: [ 0 ] }",
        FINE + 'model_warmup { batch_size: 1 inputs { key: "X" value { data_type: TYPE_INT32 dims: 0 zero_data: true } } }',
        FINE + 'model_warmup { batch_size: 0 inputs { key: "X" value { dims: -1 } } }',
        FINE + 'model_metrics { metric_control { metric_identifier { family: "f" } histogram_options { buckets: 1 } } }',
        FINE + 'batch_input { source_input: "X" data_type: TYPE_FP32 } batch_output { source_input: "X" target_name: "Y" }',
        FINE + "sequence_batching { direct { minimum_slot_utilization: 1.0 } }",
        FINE + 'sequence_batching { control_input { name: "s" control { kind: CONTROL_SEQUENCE_START bool_false_true: [ false, true ] } }'
               ' control_input { name: "i" control { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_STRING } } }',
        FINE + 'sequence_batching { state { input_name: "a" data_type: TYPE_FP32 dims: [ -1, 2 ]'
               ' initial_state { name: "z" data_type: TYPE_FP32 dims: [ 1, 2 ] zero_data: true } } }',
        'backend: "mine" platform: "whatever"',
        'platform: "onnxruntime_onnx"',
        'platform: "torch_aoti" backend: "pytorch"',
        'backend: "onnxruntime"',
        'backend: "tensorrt" instance_group { profile: "0" }',
        'backend: "tensorrt" input { name: "x" data_type: TYPE_FP16 dims: [ 3, 2, 2 ] is_shape_tensor: true is_non_linear_format_io: true }',
        'max_batch_size: 2 input { name: "x" data_type: TYPE_FP32 dims: 1 reshape { } }',
        'input { name: "x" data_type: TYPE_FP32 dims: [ 1, 1 ] reshape { } }',
        'input { name: "x" data_type: TYPE_FP32 dims: [ 2, 4, -1, 6 ] reshape { shape: [ 8, -1, 1, 6 ] } }',
        'input { name: "x" data_type: TYPE_FP32 dims: [ 3, 2, 2 ] format: FORMAT_NCHW }',
        ENSEMBLE % STEP,
        ENSEMBLE % (STEP.replace('value: "Y"', 'value: "mid"') + ' }, { model_name: "two" input_map { key: "a" value: "mid" } output_map { key: "b" value: "Y" }'),
        ENSEMBLE % ('model_name: "m" model_namespace: "other" ' + STEP.removeprefix('model_name: "one"')),
    ],
)  # fmt: skip
def test_accepted(text: str) -> None:
    assert check(text) == []


def tensor(rest: str) -> str:
    return f'backend: "python"\ninput {{ name: "x" {rest} }}'


def sequence(rest: str) -> str:
    return f"{FINE}sequence_batching {{ {rest} }}"


def control(rest: str) -> str:
    return sequence(f'control_input {{ name: "s" control {{ {rest} }} }}')


def initial(rest: str) -> str:
    return sequence(f'state {{ input_name: "a" data_type: TYPE_FP32 dims: [ 2 ] initial_state {{ {rest} }} }}')


FULL = "data_type: TYPE_FP32 dims: [ 4 ]"
CASES = [
    # model
    ("max_batch_size: -1", "max_batch_size", 1, "write 0 for a model without"),
    ('platform: "python"', "platform", 1, 'write backend: "python"'),
    ('backend: "python"\nplatform: "onnxruntime_onnx"', "platform", 2, "of the backend 'onnxruntime'"),
    ('platform: "strange" backend: "onnxruntime"', "platform", 1, 'write platform: "onnxruntime_onnx"'),
    ('platform: "ensemble" backend: "python" ' + ENSEMBLE.partition("\n")[2] % STEP, "backend", 1, "remove backend"),
    ("version_policy { latest { num_versions: 0 } }", "version_policy.latest.num_versions", 1, "1 or more"),
    ("version_policy { latest { } }", "version_policy.latest.num_versions", 1, "1 or more"),
    ("version_policy { specific { } }", "version_policy.specific.versions", 1, "versions: [1]"),
    (FINE + "response_cache { enable: true } sequence_batching { }", "response_cache.enable", 4, "remove response_cache"),
    (FINE + "response_cache { enable: true } model_transaction_policy { decoupled: true }", "response_cache.enable", 4, "remove"),
    ("model_metrics { metric_control { histogram_options { buckets: 1 } } }", "model_metrics.metric_control[0].metric_identifier", 1, "family"),
    ('model_metrics { metric_control { metric_identifier { family: "f" } } }', "model_metrics.metric_control[0].histogram_options", 1, "buckets"),
    # tensors
    ("input { data_type: TYPE_FP32 dims: 1 }", "input[0].name", 1, "write name"),
    (tensor("dims: [ 1 ]"), "input[0].data_type", 2, "write data_type"),
    (tensor("data_type: TYPE_FP32"), "input[0].dims", 2, "write dims"),
    (tensor("data_type: TYPE_FP32 dims: [ 1, 0 ]"), "input[0].dims[1]", 2, "-1 for any size"),
    (tensor("data_type: TYPE_FP32 dims: -2"), "input[0].dims[0]", 2, "-1 for any size"),
    ('output { name: "y" data_type: TYPE_FP32 }', "output[0].dims", 1, "write dims"),
    (tensor(f"{FULL} reshape {{ shape: 3 }}"), "input[0].reshape.shape", 2, "as many elements"),
    (tensor(f"{FULL} reshape {{ shape: -1 }}"), "input[0].reshape.shape", 2, "as many elements"),
    (tensor(f"{FULL} reshape {{ shape: 0 }}"), "input[0].reshape.shape[0]", 2, "1 or more"),
    (tensor("data_type: TYPE_FP32 dims: 2 reshape { }"), "input[0].reshape.shape", 2, "as many elements"),
    (tensor(f"{FULL} format: FORMAT_NHWC"), "input[0].dims", 2, "3 dims"),
    (tensor(f"{FULL} is_shape_tensor: true"), "input[0].is_shape_tensor", 2, "remove"),
    (tensor(f"{FULL} is_non_linear_format_io: true"), "input[0].is_non_linear_format_io", 2, "remove"),
    (f'backend: "tensorrt" input {{ name: "x" {FULL} is_non_linear_format_io: true }}', "input[0].dims", 1, "3 dims"),
    (FINE + "batch_input { data_type: TYPE_INT32 }", "batch_input[0].source_input", 4, "write one"),
    (FINE + 'batch_input { data_type: TYPE_INT32 source_input: "Z" }', "batch_input[0].source_input[0]", 4, "write one of X"),
    (FINE + 'batch_input { data_type: TYPE_INT64 source_input: "X" }', "batch_input[0].data_type", 4, "TYPE_INT32 or TYPE_FP32"),
    (FINE + 'batch_output { source_input: "X" target_name: [ "Z" ] }', "batch_output[0].target_name[0]", 4, "write one of Y"),
    (FINE + 'batch_output { source_input: "X" target_name: [ "Y", "Y" ] }', "batch_output[0].target_name[1]", 4, "remove one"),
    # dynamic batching
    (FINE + "max_batch_size: 8 dynamic_batching { preferred_batch_size: [ 4, 16 ] }", "dynamic_batching.preferred_batch_size[1]", 4, "max_batch_size: 16"),
    (FINE + "max_batch_size: 8 dynamic_batching { preferred_batch_size: 0 }", "dynamic_batching.preferred_batch_size[0]", 4, "1 or more"),
    (FINE + "dynamic_batching { priority_levels: 2 }", "dynamic_batching.default_priority_level", 4, "from 1 to 2"),
    (FINE + "dynamic_batching { priority_levels: 2 default_priority_level: 1 priority_queue_policy { key: 3 value { } } }",
     "dynamic_batching.priority_queue_policy[3]", 4, "from 1 to 2"),
    (FINE + "dynamic_batching { preserve_ordering: true priority_levels: 2 default_priority_level: 1 }",
     "dynamic_batching.preserve_ordering", 4, "priority_levels: 1"),
    (FINE + "dynamic_batching { preserve_ordering: true default_queue_policy { timeout_action: DELAY default_timeout_microseconds: 1 } }",
     "dynamic_batching.default_queue_policy.timeout_action", 4, "REJECT"),
    (FINE + "dynamic_batching { preserve_ordering: true priority_queue_policy { key: 1 value { timeout_action: DELAY default_timeout_microseconds: 1 } } }",
     "dynamic_batching.priority_queue_policy[1].timeout_action", 4, "REJECT"),
    # sequence batching
    (sequence("direct { minimum_slot_utilization: 1.5 }"), "sequence_batching.direct.minimum_slot_utilization", 4, "0.0 to 1.0"),
    (sequence("oldest { preferred_batch_size: 2 }"), "sequence_batching.oldest.preferred_batch_size[0]", 4, "max_batch_size: 2"),
    (sequence("control_input { }"), "sequence_batching.control_input[0].name", 4, "write name"),
    (sequence('control_input { name: "s" } control_input { name: "s" }'), "sequence_batching.control_input[1].name", 4, "another tensor"),
    (control("kind: CONTROL_SEQUENCE_END"), "sequence_batching.control_input[0].control[0]", 4, "int32_false_true: [0, 1]"),
    (control("int32_false_true: [ 0 ]"), "sequence_batching.control_input[0].control[0].int32_false_true", 4, "write two"),
    (control("int32_false_true: [ 0, 1 ] bool_false_true: [ false, true ]"),
     "sequence_batching.control_input[0].control[0].bool_false_true", 4, "keep one"),
    (control("int32_false_true: [ 0, 1 ] } control { int32_false_true: [ 0, 1 ]"),
     "sequence_batching.control_input[0].control[1].kind", 4, "keep one"),
    (control("kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_FP32"), "sequence_batching.control_input[0].control[0].data_type", 4, "TYPE_UINT64"),
    (control("kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_INT64 int32_false_true: [ 0, 1 ]"),
     "sequence_batching.control_input[0].control[0].int32_false_true", 4, "remove int32_false_true"),
    (initial("data_type: TYPE_FP32 dims: 2 zero_data: true"), "sequence_batching.state[0].initial_state[0].name", 4, "write name"),
    (initial('name: "z" data_type: TYPE_FP32 dims: 2'), "sequence_batching.state[0].initial_state[0]", 4, "zero_data: true"),
    (initial('name: "z" dims: 2 zero_data: true'), "sequence_batching.state[0].initial_state[0].data_type", 4, "write TYPE_FP32"),
    (initial('name: "z" data_type: TYPE_FP32 dims: 3 zero_data: true'), "sequence_batching.state[0].initial_state[0].dims", 4, "state's dims"),
    (initial('name: "z" data_type: TYPE_FP32 dims: -1 zero_data: true'), "sequence_batching.state[0].initial_state[0].dims", 4, "in place of each -1"),
    (sequence('state { input_name: "a" } state { input_name: "a" }'), "sequence_batching.state[1].input_name", 4, "another input"),
    # instance groups and warm-up
    (FINE + "instance_group { kind: KIND_CPU gpus: 0 }", "instance_group[0].gpus", 4, "remove gpus"),
    (FINE + "instance_group { kind: KIND_MODEL gpus: 0 }", "instance_group[0].gpus", 4, "remove gpus"),
    (FINE + 'instance_group { profile: "0" }', "instance_group[0].profile", 4, "remove profile"),
    ('backend: "tensorrt" instance_group { profile: "x" }', "instance_group[0].profile[0]", 1, "a number in quotes"),
    (FINE + 'model_warmup { batch_size: 1 inputs { key: "X" value { dims: 1 zero_data: true } } }', 'model_warmup[0].inputs["X"].data_type', 4, "data type"),
    (FINE + 'model_warmup { batch_size: 1 inputs { key: "X" value { data_type: TYPE_INT32 dims: -1 zero_data: true } } }',
     'model_warmup[0].inputs["X"].dims[0]', 4, "size to send"),
    (FINE + 'model_warmup { batch_size: 1 inputs { key: "X" value { data_type: TYPE_INT32 dims: 1 } } }', 'model_warmup[0].inputs["X"]', 4, "zero_data"),
    # ensembles
    ('platform: "ensemble"', "platform", 1, "ensemble_scheduling"),
    ('platform: "ensemble" ensemble_scheduling { }', "ensemble_scheduling", 1, "step"),
    ((ENSEMBLE % STEP).replace('platform: "ensemble"', ""), "ensemble_scheduling", 4, 'platform: "ensemble"'),
    ((ENSEMBLE % STEP).replace('platform: "ensemble"', 'platform: "x"'), "platform", 1, 'platform: "ensemble"'),
    (ENSEMBLE % STEP + "instance_group { }", "instance_group", 4, "remove instance_group"),
    (ENSEMBLE % STEP + "optimization { }", "optimization", 4, "remove optimization"),
    (ENSEMBLE % STEP + "model_warmup { }", "model_warmup", 4, "remove model_warmup"),
    (ENSEMBLE % STEP.replace('"one"', '"../secret"'), "ensemble_scheduling.step[0].model_name", 4, "a model of the repository"),
    (ENSEMBLE % STEP.replace('"one"', '".."'), "ensemble_scheduling.step[0].model_name", 4, "a model of the repository"),
    (ENSEMBLE % STEP.replace('"one"', r'"a\\b"'), "ensemble_scheduling.step[0].model_name", 4, "a model of the repository"),
    (ENSEMBLE % STEP.replace('"one"', '""'), "ensemble_scheduling.step[0].model_name", 4, "write model_name"),
    (ENSEMBLE % STEP.replace('"one"', '"m"'), "ensemble_scheduling.step[0].model_name", 4, "another model"),
    (ENSEMBLE % (STEP + ' output_map { key: "c" value: "Y" }'), 'ensemble_scheduling.step[0].output_map["c"]', 4, "another name"),
    (ENSEMBLE % (STEP + ' output_map { key: "c" value: "Z" }'), 'ensemble_scheduling.step[0].output_map["c"]', 4, "remove it"),
    (ENSEMBLE % (CHAIN % ("Y", "Z")), 'ensemble_scheduling.step[1].output_map["b"]', 4, "remove it"),
    (ENSEMBLE % STEP + 'output { name: "Q" data_type: TYPE_FP32 dims: 1 }', "output[1].name", 4, "name it in an output_map"),
    (ENSEMBLE % STEP + 'input { name: "Q" data_type: TYPE_FP32 dims: 1 }', "input[1].name", 4, "name it in an input_map"),
]  # fmt: skip


@pytest.mark.parametrize("text, path, line, advice", CASES)
def test_refused(text: str, path: str, line: int, advice: str) -> None:
    (fault,) = check(text)
    assert fault.field == path
    assert fault.line == line
    assert advice in f"{fault.message} ({fault.advice})"


def test_an_ensemble_step_without_maps() -> None:
    found = {fault.field for fault in check('platform: "ensemble" ensemble_scheduling { step { model_name: "a" } }')}
    assert found == {"ensemble_scheduling.step[0].input_map", "ensemble_scheduling.step[0].output_map"}


def test_steps_that_wait_for_each_other_never_run() -> None:
    text = ENSEMBLE % (
        'model_name: "one" input_map { key: "a" value: "X" } input_map { key: "b" value: "v" } output_map { key: "o" value: "u" } }, '
        '{ model_name: "two" input_map { key: "a" value: "u" } output_map { key: "o" value: "v" } output_map { key: "p" value: "Y" }'
    )
    found = check(text)
    assert [fault.message for fault in found] == [
        f"the tensor '{name}' of the ensemble 'm' never gets a value" for name in ("v", "u", "Y")
    ]


def test_only_the_tensor_that_nobody_writes_is_told() -> None:
    (fault,) = check(ENSEMBLE % STEP.replace('value: "X"', 'value: "nothing"'))[-1:]
    assert "'nothing' of the ensemble 'm' never gets a value" in fault.message
    assert fault.field == 'ensemble_scheduling.step[0].input_map["a"]'


def test_more_initial_states_than_one() -> None:
    state = 'initial_state { name: "z" data_type: TYPE_FP32 dims: 2 zero_data: true }'
    (fault,) = check(initial(state.removeprefix("initial_state {").removesuffix("}") + "} " + state.removesuffix("}")))
    assert fault.field == "sequence_batching.state[0].initial_state"


def test_all_faults_are_told_in_the_order_of_the_file() -> None:
    text = """\
dynamic_batching { preferred_batch_size: [ 16 ] }
output [ { name: "b" dims: [ 0 ] } ]
instance_group { kind: KIND_CPU gpus: [ 1 ] }
input [ { name: "a" } ]
max_batch_size: 8
"""
    found = check(text)
    assert [(fault.line, fault.field) for fault in found] == [
        (1, "dynamic_batching.preferred_batch_size[0]"),
        (2, "output[0].data_type"),
        (2, "output[0].dims[0]"),
        (3, "instance_group[0].gpus"),
        (4, "input[0].data_type"),
        (4, "input[0].dims"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        'input { name: "x" } output { name: "y" data_type: TYPE_FP32 }',
        "dynamic_batching { preferred_batch_size: [ 2 ] }",
        "sequence_batching { oldest { preferred_batch_size: [ 2 ] } }",
        'batch_input { source_input: "x" data_type: TYPE_FP32 }',
    ],
)
def test_what_may_still_be_filled_in_is_no_fault_before(text: str) -> None:
    assert check(text, complete=False) == []
    assert check(text) != []


@pytest.mark.parametrize(
    "text",
    [
        "max_batch_size: 0 dynamic_batching { preferred_batch_size: [ 2 ] }",
        'max_batch_size: 0 input { name: "x" data_type: TYPE_FP32 dims: 2 reshape { } }',
        "max_batch_size: -1",
        'input { name: "x" dims: [ 0 ] }',
        "input { dims: [ 1 ] }",
    ],
)  # fmt: skip
def test_what_is_given_is_checked_before_the_rest_is_filled_in(text: str) -> None:
    assert len(check(text, complete=False)) == 1


def test_platforms_of_plugins() -> None:
    text = 'platform: "sklearn_pickle"'
    assert len(check(text)) == 1
    more = {**KNOWN, "sklearn_pickle": "sklearn"}
    assert check(text, platforms=more) == []
    assert check(f'{text} backend: "sklearn"', platforms=more) == []
    assert len(check(f'{text} backend: "python"', platforms=more)) == 1


def test_platforms_and_backends() -> None:
    assert backend_of(ModelConfig(platform="tensorflow_graphdef")) == "tensorflow"
    assert backend_of(ModelConfig(platform="tensorflow_graphdef", backend="mine")) == "mine"
    assert backend_of(ModelConfig(platform="?")) == ""
    assert platforms_of("tensorflow") == ("tensorflow_graphdef", "tensorflow_savedmodel")
    assert platforms_of("python") == ()


def test_faults_of_json_have_places_too() -> None:
    parsed = parse_json('{"name": "m",\n "max_batch_size": -1}', file="m/config.json")
    (fault,) = validate(parsed)
    assert (fault.file, fault.line, fault.column) == ("m/config.json", 2, 2)


sizes = st.lists(st.sampled_from([-1, 1, 2, 3, 4]), max_size=5)


@settings(deadline=None)
@given(sizes, st.data())
def test_ones_may_come_and_go_in_a_reshape(dims: list[int], data: st.DataObject) -> None:
    shape = [size for size in dims if size != 1]
    for _ in range(data.draw(st.integers(0, 2))):
        shape.insert(data.draw(st.integers(0, len(shape))), 1)
    assert reshapes(dims, shape)


@settings(deadline=None)
@given(sizes, sizes)
def test_a_reshape_keeps_open_sizes_and_elements(dims: list[int], shape: list[int]) -> None:
    if reshapes(dims, shape):
        assert dims.count(-1) == shape.count(-1)
        assert reshapes(shape, dims)
    if reshapes([*dims, 2], [*shape, 2]):
        assert reshapes(dims, shape)
    assert not reshapes([*dims, 5], [*shape, 7])


@settings(deadline=None, max_examples=40)
@given(data=st.data())
def test_any_configuration_can_be_checked(configs: st.SearchStrategy[ModelConfig], data: st.DataObject) -> None:
    from moorage.config import ParsedConfig

    complete = data.draw(st.booleans())
    for fault in validate(ParsedConfig(data.draw(configs)), complete=complete):
        assert fault.message
        assert fault.advice
