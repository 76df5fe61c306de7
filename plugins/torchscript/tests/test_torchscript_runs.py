"""TorchScript models: containers, strings, state, and what goes wrong."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from moorage.errors import ConfigError, ModelError, RequestError
from moorage.types import DataType
from moorage_torchscript.script import load_script

Start = Callable[..., Any]
FP32 = np.float32


def tensors(field: str, *names: str, data_type: str = "TYPE_FP32", dims: str = "-1") -> str:
    return f"{field} [ " + ", ".join(f'{{ name: "{name}" data_type: {data_type} dims: [ {dims} ] }}' for name in names) + " ] "


def words(*elements: bytes) -> np.ndarray:
    array = np.empty(len(elements), dtype=object)
    array[:] = elements
    return array


SIDES = tensors("input", "LEFT", "RIGHT")
BOTH = SIDES + tensors("output", "TOTAL", "GAP")
X = tensors("input", "X")
Y = tensors("output", "Y")
WORDS = tensors("input", "words", data_type="TYPE_STRING") + 'input { name: "number" data_type: TYPE_INT64 dims: [ 1 ] } '
WORDS_OUT = tensors("output", "SHOUTED", data_type="TYPE_STRING") + 'output { name: "COUNT" data_type: TYPE_INT64 dims: [ 1 ] }'
LEFT, RIGHT = np.array([1, 2], FP32), np.array([10, 30], FP32)


@pytest.mark.parametrize("file", ["add_sub.pt", "traced.pt"])
@pytest.mark.parametrize(
    "inputs, outputs", [(("LEFT", "RIGHT"), ("A", "B")), (("INPUT__0", "INPUT__1"), ("OUTPUT__0", "OUTPUT__1"))]
)
def test_names_by_argument_by_number_and_by_order(instance: Start, file: str, inputs: Any, outputs: Any) -> None:
    made = instance(file, tensors("input", *inputs) + tensors("output", *outputs))
    found = made.run({inputs[0]: LEFT, inputs[1]: RIGHT}, outputs)
    assert found[outputs[0]].tolist() == [11, 32]
    assert found[outputs[1]].tolist() == [-9, -28]


def test_numbers_in_names_go_before_the_order(instance: Start) -> None:
    made = instance("add_sub.pt", tensors("input", "B__1", "A__0") + tensors("output", "GAP__1", "TOTAL__0"))
    found = made.run({"A__0": LEFT, "B__1": RIGHT}, ["GAP__1", "TOTAL__0"])
    assert found["GAP__1"].tolist() == [-9, -28]
    assert found["TOTAL__0"].tolist() == [11, 32]


def test_one_output_of_two_may_be_listed(instance: Start) -> None:
    made = instance("add_sub.pt", SIDES + tensors("output", "OUTPUT__1"))
    assert made.run({"LEFT": LEFT, "RIGHT": RIGHT}, ["OUTPUT__1"])["OUTPUT__1"].tolist() == [-9, -28]


def test_a_table_of_results_is_taken_by_its_keys(instance: Start) -> None:
    assert instance("table.pt", BOTH).run({"LEFT": LEFT, "RIGHT": RIGHT}, ["GAP"])["GAP"].tolist() == [-9, -28]
    by_number = instance("table.pt", SIDES + tensors("output", "OUTPUT__1"))
    assert by_number.run({"LEFT": LEFT, "RIGHT": RIGHT}, ["OUTPUT__1"])["OUTPUT__1"].tolist() == [-9, -28]
    with pytest.raises(ModelError, match="model 'table' returned no 'SUM'; the keys of its result are TOTAL, GAP"):
        instance("table.pt", SIDES + tensors("output", "SUM")).run({"LEFT": LEFT, "RIGHT": RIGHT}, ["SUM"])


def test_a_table_as_the_only_argument_takes_all_inputs_by_name(instance: Start) -> None:
    made = instance("table_in.pt", tensors("input", "RIGHT", "LEFT") + Y)
    assert made.run({"LEFT": LEFT, "RIGHT": RIGHT}, ["Y"])["Y"].tolist() == [-9, -28]


def test_a_list_as_the_only_argument_takes_all_inputs_in_order(instance: Start) -> None:
    made = instance("list_in.pt", tensors("input", "INPUT__1", "INPUT__0") + tensors("output", "OUTPUT__0", "OUTPUT__1"))
    found = made.run({"INPUT__0": LEFT, "INPUT__1": RIGHT}, ["OUTPUT__0", "OUTPUT__1"])
    assert found["OUTPUT__1"].tolist() == [-9, -28]


def test_an_output_number_that_a_list_does_not_have(instance: Start) -> None:
    made = instance("list_in.pt", tensors("input", "A", "B") + tensors("output", "OUTPUT__4"))
    with pytest.raises(ModelError, match=r"output 'OUTPUT__4' would be number 4.*returned 2"):
        made.run({"A": LEFT, "B": RIGHT}, ["OUTPUT__4"])


def test_strings_go_in_and_out(instance: Start) -> None:
    made = instance("words.pt", WORDS + WORDS_OUT)
    found = made.run({"words": words(b"aye", "é".encode(), b""), "number": np.array([4])}, ["SHOUTED", "COUNT"])
    assert found["SHOUTED"].tolist() == [b"AYE", "é".encode(), b""]
    assert found["COUNT"].tolist() == [7]


def test_strings_of_a_batch_come_back_by_rows(instance: Start) -> None:
    config = tensors("input", "X", data_type="TYPE_STRING", dims="2") + tensors(
        "output", "Y", data_type="TYPE_STRING", dims="2"
    )
    made = instance("identity_words.pt", "max_batch_size: 4 " + config)
    batch = words(b"a", b"b", b"c", b"d").reshape(2, 2)
    np.testing.assert_array_equal(made.run({"X": batch}, ["Y"])["Y"], batch)


def test_strings_that_do_not_make_the_configured_shape(instance: Start) -> None:
    config = tensors("input", "X", data_type="TYPE_STRING") + tensors("output", "Y", data_type="TYPE_STRING", dims="2")
    with pytest.raises(ModelError, match=r"model 'identity_words' gave 3 strings as output 'Y'.*\[2\]"):
        instance("identity_words.pt", config).run({"X": words(b"a", b"b", b"c")}, ["Y"])


def test_signature_knows_strings_and_leaves_the_rest_open(load: Start) -> None:
    found = load("words.pt", WORDS + WORDS_OUT).signature()
    assert {spec.name: spec.datatype for spec in found.inputs} == {"words": DataType.BYTES, "number": None}
    assert {spec.name: spec.datatype for spec in found.outputs} == {"SHOUTED": DataType.BYTES, "COUNT": None}
    assert all(spec.shape is None for spec in (*found.inputs, *found.outputs))


def test_arguments_with_defaults_may_be_left_out(instance: Start) -> None:
    assert instance("options.pt", X + Y).run({"X": LEFT}, ["Y"])["Y"].tolist() == [1, 2]
    bias = instance("options.pt", X + tensors("input", "bias") + Y)
    assert bias.run({"X": LEFT, "bias": RIGHT}, ["Y"])["Y"].tolist() == [11, 32]


def test_an_optional_input_may_be_left_out_of_a_request(instance: Start) -> None:
    optional = 'input { name: "bias" data_type: TYPE_FP32 dims: [ -1 ] optional: true } '
    made = instance("options.pt", X + optional + Y)
    assert made.run({"X": LEFT}, ["Y"])["Y"].tolist() == [1, 2]


def test_numbers_and_texts_are_arguments(instance: Start) -> None:
    scalars = (
        'input { name: "times" data_type: TYPE_INT64 dims: [ 1 ] } input { name: "sign" data_type: TYPE_STRING dims: [ 1 ] } '
    )
    made = instance("options.pt", X + scalars + Y)
    assert made.run({"X": LEFT, "times": np.array([3]), "sign": words(b"-")}, ["Y"])["Y"].tolist() == [-3, -6]
    with pytest.raises(RequestError, match="input 'times' is one int, but it has 2 elements"):
        made.run({"X": LEFT, "times": np.array([3, 4]), "sign": words(b"-")}, ["Y"])


def test_a_batch_norm_and_a_convolution(instance: Start) -> None:
    made = instance("blur.pt", tensors("input", "IMAGE", dims="1, -1, -1") + tensors("output", "B", dims="1, -1, -1"))
    image = np.zeros((1, 1, 5, 5), FP32)
    image[0, 0, 2, 2] = 9
    np.testing.assert_allclose(made.run({"IMAGE": image}, ["B"])["B"][0, 0, 1:4, 1:4], 1, rtol=1e-5)


def test_bf16_keeps_its_bits(instance: Start) -> None:
    made = instance("identity.pt", tensors("input", "X", data_type="TYPE_BF16") + tensors("output", "Y", data_type="TYPE_BF16"))
    numbers = np.array([1.5, -2, 3.140625, np.inf, -0.0]).astype(ml_dtypes.bfloat16)
    found = made.run({"X": numbers[::-1]}, ["Y"])["Y"]
    assert found.dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(found.view(np.uint16), numbers[::-1].copy().view(np.uint16))


def test_inputs_share_their_memory_with_the_model(instance: Start) -> None:
    given = np.frombuffer(LEFT.tobytes(), FP32)
    found = instance("identity.pt", X + Y).run({"X": given}, ["Y"])["Y"]
    assert np.shares_memory(found, given)


def test_a_model_that_writes_into_its_input_gets_a_copy(instance: Start) -> None:
    given = np.frombuffer(LEFT.tobytes(), FP32)
    assert instance("overwrite.pt", X + Y).run({"X": given}, ["Y"])["Y"].tolist() == [2, 4]
    assert given.tolist() == [1, 2]


def test_results_of_a_model_with_state_stay_what_they_were(instance: Start) -> None:
    made = instance("counter.pt", X + Y)
    first = made.run({"X": LEFT}, ["Y"])["Y"]
    second = made.run({"X": LEFT}, ["Y"])["Y"]
    assert (first.tolist(), second.tolist()) == ([3], [6])


def test_instances_of_a_model_with_state_do_not_share_it(load: Start, place: Any) -> None:
    model = load("counter.pt", X + Y, instances=3)
    made = [model.instance(place) for _ in range(3)]
    assert [one.run({"X": LEFT}, ["Y"])["Y"].tolist() for one in made] == [[3], [3], [3]]


def test_instances_share_state_and_weights_if_told_so(load: Start, place: Any) -> None:
    model = load("counter.pt", X + Y, instances=2, ENABLE_WEIGHT_SHARING="true")
    made = [model.instance(place) for _ in range(2)]
    assert [one.run({"X": LEFT}, ["Y"])["Y"].tolist() for one in made] == [[3], [6]]


@pytest.mark.parametrize("share, modules", [("", 1), ("true", 1), ("false", 3)])
def test_weights_are_shared_unless_told_otherwise(
    load: Start, place: Any, monkeypatch: pytest.MonkeyPatch, share: str, modules: int
) -> None:
    made: list[object] = []

    def count(*given: Any) -> Any:
        made.append(given)
        return load_script(*given)

    monkeypatch.setattr("moorage_torchscript.script_model.load_script", count)
    model = load("blur.pt", tensors("input", "IMAGE") + tensors("output", "B"), instances=3, ENABLE_WEIGHT_SHARING=share)
    for _ in range(3):
        model.instance(place)
    assert len(made) == modules


def test_sizes_that_do_not_fit_are_the_request_s_fault(instance: Start) -> None:
    with pytest.raises(RequestError) as caught:
        instance("add_sub.pt", BOTH).run({"LEFT": np.ones(3, FP32), "RIGHT": np.ones(4, FP32)}, ["GAP"])
    message = str(caught.value)
    assert "model 'add_sub'" in message
    assert "must match the size of tensor b (4)" in message
    assert "'LEFT' FP32 [3], 'RIGHT' FP32 [4]" in message
    assert "Traceback" not in message
    assert "\n" not in message


def test_a_type_that_the_model_does_not_take_says_so(instance: Start) -> None:
    config = tensors("input", "IMAGE", data_type="TYPE_FP64", dims="1, -1, -1") + tensors("output", "B", dims="1, -1, -1")
    with pytest.raises(
        ModelError, match=r"model 'blur' failed: .*(dtype|scalar type|type).*'IMAGE' FP64 .*data_type in the config"
    ):
        instance("blur.pt", config).run({"IMAGE": np.zeros((1, 1, 5, 5))}, ["B"])


def test_an_exception_of_the_model_s_own_is_its_failure(instance: Start) -> None:
    made = instance("raises.pt", X + Y)
    with pytest.raises(ModelError, match=r"model 'raises' failed: .*too much"):
        made.run({"X": LEFT}, ["Y"])
    assert made.run({"X": -LEFT}, ["Y"])["Y"].tolist() == [-1, -2]


def test_a_result_that_is_no_tensor_says_what_it_is(instance: Start) -> None:
    with pytest.raises(ModelError, match="output 'Y' is of type float; an output is a Tensor or a List"):
        instance("scalar.pt", X + Y).run({"X": LEFT}, ["Y"])


def test_an_input_left_out_is_the_request_s_fault(instance: Start) -> None:
    with pytest.raises(RequestError, match="model 'add_sub' needs input 'RIGHT'"):
        instance("add_sub.pt", BOTH).run({"LEFT": LEFT}, ["GAP"])


@pytest.mark.parametrize(
    "file, text, words",
    [
        ("add_sub.pt", "", r"input, output: .*no data types and shapes.*name: \"LEFT\".*name: \"OUTPUT__1\".*LEFT: Tensor"),
        ("add_sub.pt", SIDES, r"output \[ \{ name: \"OUTPUT__0\""),
        ("add_sub.pt", 'input { name: "LEFT" }' + tensors("output", "O"), "no data types and shapes"),
        (
            "add_sub.pt",
            tensors("input", "LEFT") + Y,
            r"takes 2 input\(s\), the configuration gives 1; nothing is given for: RIGHT",
        ),
        ("add_sub.pt", SIDES + tensors("output", "OUTPUT__2"), "'OUTPUT__2' would be output 2"),
        ("identity.pt", tensors("input", "X", data_type="TYPE_STRING") + Y, "TYPE_STRING, but the model takes a Tensor"),
        ("options.pt", "max_batch_size: 4 " + X + tensors("input", "times") + Y, "'times' is one int for a whole batch"),
    ],
)
def test_configurations_that_do_not_fit_say_what_to_write(load: Start, file: str, text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=f"model '{file[:-3]}'.*{words}"):
        load(file, text)


def test_a_model_in_training_mode_is_served_with_a_warning(load: Start, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        load("dropout.pt", tensors("input", "input") + Y)
    assert "model 'dropout' was saved in training mode" in caplog.text


def test_names_that_are_an_order_are_logged(load: Start, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        load("add_sub.pt", tensors("input", "A", "B") + tensors("output", "OUTPUT__0", "OUTPUT__1"))
    assert "model 'add_sub': the names of its inputs are neither names of arguments nor NAME__INDEX" in caplog.text
    assert "outputs" not in caplog.text


def test_loading_shows_no_warning_of_pytorch(load: Start, recwarn: pytest.WarningsRecorder) -> None:
    load("add_sub.pt", BOTH)
    assert not list(recwarn)
