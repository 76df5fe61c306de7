"""What a server makes of the configuration files that users write, beside real model files."""

from __future__ import annotations

import json
from typing import Any

import pytest

from inputs.conftest import Serve
from inputs.live import LiveServer
from inputs.models import COPY, Shape, config, copy, io, onnx_copy
from inputs.repository import model

EXPLICIT = "--model-control-mode=explicit"
STATIC = ("batch", 4)
CONFIG_JSON = '{"max_batch_size":4,"input":[{"name":"X","data_type":"TYPE_FP32","dims":[-1]}]}'


@pytest.fixture(scope="module")
def server(shared: Serve) -> LiveServer:
    return shared(None, EXPLICIT)


def served(server: LiveServer, name: str) -> Any:
    """The configuration with which a model is served."""
    reply = server.load(name)
    assert reply.status == 200, reply.error
    return server.get(f"/v2/models/{name}/config").json


def refused(server: LiveServer, name: str) -> str:
    """Why a model is not served: the answer to the load says the same as the index."""
    reply = server.load(name)
    assert reply.status == 400
    assert server.reason(name) == reply.error
    assert name in reply.error
    return reply.error


def onnx(text: str, shape: Shape = STATIC, out: Shape | None = None) -> dict[str, str | bytes]:
    return {"config.pbtxt": text, "1/model.onnx": onnx_copy(shape, out)}


def test_one_line_is_enough_beside_a_model_that_batches(server: LiveServer, name: str) -> None:
    server.add(name, onnx("max_batch_size: 8"))
    found = served(server, name)
    assert found["max_batch_size"] == 8
    assert found["backend"] == "onnxruntime"
    assert [found["input"][0][key] for key in ("name", "data_type", "dims")] == ["X", "TYPE_FP32", [4]]
    assert found["output"][0]["dims"] == [4]


def test_an_empty_file_is_the_same_as_none(server: LiveServer, name: str) -> None:
    server.add(f"{name}_empty", onnx(""))
    server.add(f"{name}_none", {"1/model.onnx": onnx_copy()})
    empty, none = served(server, f"{name}_empty"), served(server, f"{name}_none")
    assert (empty.pop("name"), none.pop("name")) == (f"{name}_empty", f"{name}_none")
    for found in (empty, none):
        found.pop("instance_group")
    assert empty == none


def test_a_name_that_is_not_the_folders(server: LiveServer, name: str) -> None:
    server.add(name, onnx('name: "beta"'))
    message = refused(server, name)
    assert "'beta'" in message
    assert f"'{name}'" in message


TEXTS = [
    'input { name: "X" data_type: TYPE_FP32 dims: 4 }',
    'parameters: { key: "K", value: { string_value: "v" } }',
    'parameters [ { key: "a" value { string_value: "1" } }, { key: "b" value { string_value: "2" } } ]',
    "version_policy: { all { }}",
    "version_policy: { specific: { versions: [1,3]}}",
    "name: 'NAME'",
    'name: "NAME"; backend: "onnxruntime";',
    '# comment\r\nbackend: "onnxruntime" # more\r\n',
]


@pytest.mark.parametrize("text", TEXTS)
def test_forms_of_the_text_format(server: LiveServer, name: str, text: str) -> None:
    server.add(name, onnx(text.replace("NAME", name)))
    assert served(server, name)["backend"] == "onnxruntime"


SLIPS = [
    ("max_batch_size=8", "1:15", "max_batch_size: with a colon"),
    ("max_batchsize: 8", "1:1", "write max_batch_size"),
    ('name "x"', "1:6", "colon"),
    ('input [ { name: "X" } { name: "Z" } ]', "1:23", "comma"),
    ('input [ { name: "X" }, ]', "1:22", "remove the comma"),
    ('input { data_type: "TYPE_FP32" }', "1:20", "write TYPE_FP32"),
    ("input { data_type: FP32 }", "1:20", "write TYPE_FP32"),
    ('input { dims: ["4"] }', "1:16", "write 4 without quotes"),
    ("max_batch_size: 8.0", "1:17", "write 8"),
    ('name: "x"\nname: "x"', "2:1", "given twice"),
    ("version_policy: { all { } latest { num_versions: 2 } }", "1:27", "exclude each other"),
    ("dynamic_batching {", "1:18", "never closed"),
    ("max_batch_size: ${MAX_BATCH}", "1:17", "unresolved template variable MAX_BATCH"),
]


@pytest.mark.parametrize("text, place, words", SLIPS)
def test_slips_are_told_with_their_place(server: LiveServer, name: str, text: str, place: str, words: str) -> None:
    server.add(name, onnx(text))
    message = refused(server, name)
    assert f"{name}/config.pbtxt:{place}: " in message
    assert words in message


RULES = [
    ("max_batch_size: -1", "max_batch_size"),
    (io(dims="0"), "input[0].dims[0]"),
    ('input { name: "X" dims: 1 }', "input[0].data_type"),
    ('input { name: "X" data_type: TYPE_FP32 }', "input[0].dims"),
    ("max_batch_size: 8 dynamic_batching { preferred_batch_size: [16] }", "dynamic_batching.preferred_batch_size[0]"),
    ('backend: "python" platform: "onnxruntime_onnx"', "platform"),
]


@pytest.mark.parametrize("text, field", RULES)
def test_rules_beyond_the_grammar(server: LiveServer, name: str, text: str, field: str) -> None:
    server.add(name, {"config.pbtxt": 'backend: "python"\n' * ("backend" not in text) + text, "1/model.py": COPY})
    message = refused(server, name)
    assert f" {field}: " in message
    assert "config.pbtxt:" in message


@pytest.mark.parametrize("text", ['backend: "onnxruntime"', 'platform: "onnxruntime_onnx"'])
def test_backend_or_platform_alone(server: LiveServer, name: str, text: str) -> None:
    server.add(name, onnx(text))
    assert served(server, name)["backend"] == "onnxruntime"


def test_a_default_batch_size_comes_before_the_check(serve: Serve) -> None:
    text = "dynamic_batching { preferred_batch_size: [2] }"
    files = {**model("m", onnx(text)), **model("too_large", onnx(text.replace("2", "129")))}
    server = serve(files, "--backend-config=default-max-batch-size=128", "--exit-on-error=false")
    assert server.get("/v2/models/m/config").json["max_batch_size"] == 128
    assert "preferred_batch_size" in server.index("too_large")[0]["reason"]


@pytest.mark.parametrize("text", ["", io(dims="1").replace("dims: [ 1 ]", "dims: [ 1 ] reshape { }")])
def test_a_tensor_without_dimensions_has_one_element(server: LiveServer, name: str, text: str) -> None:
    server.add(name, onnx(text, ()))
    (tensor,) = served(server, name)["input"]
    assert (tensor["dims"], tensor["reshape"]) == ([1], {"shape": []})
    assert server.output(name, [2.5]) == [2.5]


def test_a_wider_output_is_fine_and_the_metadata_are_exact(server: LiveServer, name: str) -> None:
    text = f"max_batch_size: 8 {io(dims='-1, 25')}"
    server.add(name, onnx(text, ("batch", "any", 25), ("batch", 256, 25)))
    message = served(server, name)
    assert message["max_batch_size"] == 8
    assert server.get(f"/v2/models/{name}").json["outputs"][0]["shape"] == [-1, 256, 25]


def test_a_narrower_output_is_fine_until_the_model_gives_another_shape(server: LiveServer, name: str) -> None:
    text = 'max_batch_size: 0 output { name: "Y" data_type: TYPE_FP32 dims: [1, 3] }'
    server.add(name, onnx(text, ("a", "b")))
    served(server, name)
    assert _run(server, name, [1, 3]).status == 200
    other = _run(server, name, [2, 3])
    assert other.status >= 400
    assert "[2, 3]" in other.error
    assert "[1, 3]" in other.error


def _run(server: LiveServer, name: str, shape: list[int]) -> Any:
    data = [0] * (shape[0] * shape[1])
    return server.post(
        f"/v2/models/{name}/infer", {"inputs": [{"name": "X", "datatype": "FP32", "shape": shape, "data": data}]}
    )


def test_a_first_dimension_that_the_model_fixes(server: LiveServer, name: str) -> None:
    server.add(name, onnx(f"max_batch_size: 4 {io(dims='3, 64, 64')}", (1, 3, 64, 64)))
    message = refused(server, name)
    assert "fixed at 1" in message
    assert "max_batch_size: 0 and dims: [1, 3, 64, 64]" in message


@pytest.mark.parametrize("dims, fits", [("128", True), ("-1, 128", False)])
def test_dims_leave_out_the_batch(server: LiveServer, name: str, dims: str, fits: bool) -> None:
    server.add(name, onnx(f"max_batch_size: 16 {io(dims=dims)}", ("batch", 128)))
    if fits:
        assert served(server, name)["max_batch_size"] == 16
    else:
        assert "write dims: [128]" in refused(server, name)


HOOK = (
    COPY
    + """
    @staticmethod
    def auto_complete_config(config):
        config.set_max_batch_size(0)
        return config
"""
)


def test_a_model_that_contradicts_its_file(server: LiveServer, name: str) -> None:
    server.add(name, {"config.pbtxt": config(more="max_batch_size: 8"), "1/model.py": HOOK})
    message = refused(server, name)
    for word in ("is 8 in the configuration file", "but 0 in auto_complete_config", f"{name}/1/model.py:"):
        assert word in message
    assert "plugin" not in message


def test_without_completion_the_file_wins(serve: Serve) -> None:
    files = {"config.pbtxt": config(more="max_batch_size: 8"), "1/model.py": HOOK}
    server = serve(model("m", files), "--disable-auto-complete-config")
    assert server.get("/v2/models/m/config").json["max_batch_size"] == 8


def test_json_says_the_same_as_text(server: LiveServer, name: str) -> None:
    text = 'max_batch_size: 4 input { name: "X" data_type: TYPE_FP32 dims: [ -1 ] }'
    shape = ("batch", "any")
    server.add(f"{name}_text", onnx(text, shape))
    server.add(f"{name}_json", {"config.json": CONFIG_JSON, "1/model.onnx": onnx_copy(shape)})
    as_text, as_json = (json.dumps(served(server, f"{name}_{form}")) for form in ("text", "json"))
    assert as_text.replace(f"{name}_text", name) == as_json.replace(f"{name}_json", name)
    server.add(f"{name}_both", {"config.json": CONFIG_JSON, **onnx(text, shape)})
    assert "both config.pbtxt and config.json" in refused(server, f"{name}_both")


def test_a_configuration_of_a_load_with_the_keys_of_the_protocol(server: LiveServer, name: str) -> None:
    server.add(name, copy())
    wrong = {"backend": "python", "inputs": [], "input": [{"name": "X", "datatype": "FP32", "shape": [-1]}]}
    reply = server.load(name, {"config": json.dumps(wrong)})
    assert reply.status == 400
    for wanted in ('"inputs" (write "input")', 'write "data_type"', 'write "dims"'):
        assert wanted in reply.error


def test_a_lenient_configuration_of_a_load(server: LiveServer, name: str) -> None:
    server.add(name, copy())
    tensor = {"data_type": "type_fp32", "dims": -1}
    lenient = {"backend": "python", "input": {"name": "X", **tensor}, "output": {"name": "Y", **tensor}}
    assert server.load(name, {"config": json.dumps(lenient)}).status == 200
    shown = server.get(f"/v2/models/{name}/config").json
    assert shown["input"][0]["dims"] == [-1]
    assert shown["output"][0]["data_type"] == "TYPE_FP32"


@pytest.mark.parametrize("choice, size", [("big", 32), ("none_such", 4)])
def test_a_configuration_by_another_name(serve: Serve, choice: str, size: int) -> None:
    files = {**copy(more="max_batch_size: 4"), "configs/big.pbtxt": config(more="max_batch_size: 32")}
    server = serve(model("m", files), f"--model-config-name={choice}")
    assert server.get("/v2/models/m/config").json["max_batch_size"] == size
