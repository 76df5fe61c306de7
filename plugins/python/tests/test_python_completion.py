from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from moorage.backend import VersionFiles
from moorage.config.schema import DynamicBatching, ModelConfig, ModelInput, ModelOutput, SequenceBatching, TransactionPolicy
from moorage.errors import ConfigError, ModelError
from moorage.types import DataType
from moorage_python.plugin import backends, complete_config, discover_model

EMPTY = ModelConfig(name="m", backend="python")
P = {"name": "P", "data_type": "TYPE_FP32", "dims": [-1]}
R = {"name": "R", "data_type": "TYPE_FP32", "dims": [2]}


@pytest.fixture
def complete(tmp_path: Path) -> Any:
    def complete(body: str, config: Any = EMPTY) -> Any:
        folder = tmp_path / "m" / "1"
        folder.mkdir(parents=True, exist_ok=True)
        lines = textwrap.indent(textwrap.dedent(body).strip(), " " * 8)
        code = f"class TritonPythonModel:\n    @staticmethod\n    def auto_complete_config(config):\n{lines}\n"
        (folder / "model.py").write_text(code if body else "class TritonPythonModel:\n    pass\n")
        return complete_config(config, VersionFiles("m", frozenset({"model.py"}), folder, folder.parent, 1))

    return complete


def test_fills_an_empty_configuration(complete: Callable[..., Any]) -> None:
    found = complete(f"""
        config.set_max_batch_size(6)
        config.set_dynamic_batching()
        config.add_input({P})
        config.add_input({{**{R}, "name": "Q", "optional": True}})
        config.add_output({R})
        config.set_model_transaction_policy({{"decoupled": True}})
        return config
    """)
    assert found == evolve(
        EMPTY,
        max_batch_size=6,
        scheduling=DynamicBatching(),
        input=(ModelInput("P", DataType.FP32, dims=(-1,)), ModelInput("Q", DataType.FP32, dims=(2,), optional=True)),
        output=(ModelOutput("R", DataType.FP32, (2,)),),
        model_transaction_policy=TransactionPolicy(decoupled=True),
    )


def test_keeps_what_the_file_says_and_adds_the_rest(complete: Callable[..., Any]) -> None:
    given = evolve(EMPTY, max_batch_size=2, input=(ModelInput("P", DataType.FP32, dims=(-1,), allow_ragged_batch=True),))
    found = complete(f"config.set_max_batch_size(5); config.add_input({P}); config.add_output({R}); return config", given)
    assert found.max_batch_size == 5
    assert found.input == given.input
    assert found.output == (ModelOutput("R", DataType.FP32, (2,)),)


def test_fills_in_a_tensor_that_the_file_only_names(complete: Callable[..., Any]) -> None:
    found = complete(f"config.add_input({P}); return config", evolve(EMPTY, input=(ModelInput("P"),)))
    assert found.input == (ModelInput("P", DataType.FP32, dims=(-1,)),)


def test_a_model_without_the_method_has_nothing_to_say(complete: Callable[..., Any]) -> None:
    assert complete("") is None


def test_other_backends_are_left_alone(complete: Callable[..., Any]) -> None:
    assert complete("return 1", evolve(EMPTY, backend="onnxruntime")) is None


@pytest.mark.parametrize(
    "call, given, words",
    [
        (
            "set_max_batch_size(0)",
            {"max_batch_size": 8},
            "max_batch_size is 8 in the configuration file, but 0 in auto_complete_config of model 'm'",
        ),
        ("set_dynamic_batching()", {"scheduling": SequenceBatching()}, "sequence_batching in the configuration file"),
        (
            f"add_input({P})",
            {"input": (ModelInput("P", DataType.INT32, dims=(-1,)),)},
            "input 'P' data_type is TYPE_INT32 .* but TYPE_FP32",
        ),
        (f"add_input({P})", {"input": (ModelInput("P", DataType.FP32, dims=(4,)),)}, r"input 'P' dims is \[4\] .* but \[-1\]"),
        (f"add_output({R})", {"output": (ModelOutput("R", DataType.FP32, (3,)),)}, r"output 'R' dims is \[3\] .* but \[2\]"),
        (
            "add_input({**P, 'optional': True})",
            {"input": (ModelInput("P", DataType.FP32, dims=(-1,)),)},
            "input 'P' optional is False",
        ),
        (
            "set_model_transaction_policy({'decoupled': False})",
            {"model_transaction_policy": TransactionPolicy(decoupled=True)},
            "decoupled is True",
        ),
        ("add_input({'name': 'P', 'dims': [1]})", {}, "input 'P' lacks 'data_type'"),
        ("add_output({'data_type': 'TYPE_FP32', 'dims': [1]})", {}, "output '' lacks 'name'"),
        ("add_output({**P, 'optional': True})", {}, "output 'P' has no property 'optional'"),
        ("set_model_transaction_policy({'coupled': 1})", {}, "has no 'coupled'"),
    ],
)
def test_contradictions_name_both_values(complete: Callable[..., Any], call: str, given: Any, words: str) -> None:
    body = f"P = {P}\nconfig.{call}\nreturn config"
    with pytest.raises(ModelError, match=f"model 'm' version 1: auto_complete_config raised ValueError: .*{words}"):
        complete(body, evolve(EMPTY, **given))


@pytest.mark.parametrize(
    "body, words", [("return None", "must return the ModelConfig.*not NoneType"), ("1 / 0", "ZeroDivisionError.*model.py:4")]
)
def test_a_broken_method_is_an_error(complete: Callable[..., Any], body: str, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        complete(body)


def test_an_unknown_data_type_is_a_config_error(complete: Callable[..., Any]) -> None:
    with pytest.raises(ConfigError, match="'P' the unknown data_type 'TYPE_FP33'"):
        complete("config.add_input({'name': 'P', 'data_type': 'TYPE_FP33', 'dims': [1]}); return config")


def test_details_of_dynamic_batching_are_kept(complete: Callable[..., Any]) -> None:
    found = complete(
        "config.set_dynamic_batching(); config.as_dict()['dynamic_batching']['max_queue_delay_microseconds'] = 7; return config"
    )
    assert found.scheduling == DynamicBatching(max_queue_delay_microseconds=7)


@pytest.mark.parametrize(
    "names, found",
    [({"model.py"}, True), ({"model.py", "helper.py"}, True), ({"sub/model.py"}, False), ({"model.onnx"}, False)],
)
def test_discovers_by_name(names: set[str], found: Any) -> None:
    match = discover_model(VersionFiles("m", frozenset(names)))
    assert (match is not None) == found
    if match:
        assert (match.backend, match.platform, match.default_model_filename) == ("python", "", "model.py")


def test_registers_one_backend() -> None:
    (backend,) = backends()
    assert backend.name == "python"
