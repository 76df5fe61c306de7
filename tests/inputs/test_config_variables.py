"""Template variables in the files of a repository, through the whole server."""

from __future__ import annotations

import pytest

from inputs.conftest import Serve
from inputs.live import LiveServer
from inputs.models import COPY, config, copy, json_config
from inputs.repository import model

VALUES = {
    "MAX_BATCH": "4",
    "INJECTED": '4\nbackend: "python"',
    "ONE_LINE": '4 backend: "python"',
    "SECRET_WORD": "hush",
    "WIDTH": "3",
    "KIND": "TYPE_FP32",
}
TEMPLATE = "max_batch_size: ${MAX_BATCH}\n"


@pytest.fixture(scope="module")
def server(shared: Serve) -> LiveServer:
    flags = ["--substitute-variables", "--model-control-mode=explicit"]
    return shared({"m/1/model.py": COPY}, *flags, environment=VALUES)


def served(server: LiveServer, name: str) -> dict[str, object]:
    assert server.load(name).status == 200
    found: dict[str, object] = server.get(f"/v2/models/{name}/config").json
    return found


def test_a_variable_of_the_environment_is_filled_in(server: LiveServer) -> None:
    server.add("filled", copy(more=TEMPLATE))
    assert served(server, "filled")["max_batch_size"] == 4


def test_a_variable_may_stand_for_a_name_and_in_a_list(server: LiveServer) -> None:
    text = config().replace("TYPE_FP32", "${KIND}").replace("[ -1 ]", "[ -1, ${WIDTH} ]")
    server.add("anywhere", {"config.pbtxt": text, "1/model.py": COPY})
    assert served(server, "anywhere")["input"][0]["dims"] == [-1, 3]  # type: ignore[index]


def test_the_same_in_json(server: LiveServer) -> None:
    files = {"config.json": json_config(max_batch_size="${MAX_BATCH}", parameters={"p": {"string_value": "a ${WIDTH} b"}})}
    server.add("in_json", {**files, "1/model.py": COPY})
    found = served(server, "in_json")
    assert found["max_batch_size"] == 4
    assert found["parameters"] == {"p": {"string_value": "a 3 b"}}


@pytest.mark.parametrize("name", ["INJECTED", "ONE_LINE"])
@pytest.mark.parametrize("form", ["pbtxt", "json"])
def test_a_variable_cannot_add_a_field(server: LiveServer, name: str, form: str) -> None:
    text = config(more=f"max_batch_size: ${{{name}}}") if form == "pbtxt" else json_config(max_batch_size=f"${{{name}}}")
    server.add(f"{name}_{form}", {f"config.{form}": text, "1/model.py": COPY})
    refused = server.load(f"{name}_{form}")
    assert refused.status == 400
    assert f"config.{form}:" in refused.error
    assert "max_batch_size" in refused.error
    assert name in refused.error


def test_a_variable_that_is_not_set_is_named_with_its_place(server: LiveServer) -> None:
    server.add("unset", copy(more="\n" + TEMPLATE.replace("MAX_BATCH", "NEVER_SET")))
    refused = server.load("unset")
    assert refused.status == 400
    assert "config.pbtxt:5:17: max_batch_size: unresolved template variable NEVER_SET" in refused.error
    assert refused.error.split(": ", 1)[1] in server.reason("unset")


def test_a_client_cannot_read_the_environment_by_a_configuration(server: LiveServer) -> None:
    text = json_config(parameters={"p": {"string_value": "${SECRET_WORD}"}})
    assert server.load("m", {"config": text}).status == 200
    assert "hush" not in server.get("/v2/models/m/config").body.decode()
    refused = server.load("m", {"config": json_config(max_batch_size="${MAX_BATCH}")})
    assert refused.status == 400
    assert "unresolved template variable MAX_BATCH" in refused.error


def test_without_the_flag_nothing_is_filled_in(serve: Serve) -> None:
    server = serve(model("m", copy(more=TEMPLATE)), "--exit-on-error=false", environment=VALUES)
    assert "max_batch_size: unresolved template variable MAX_BATCH" in server.reason("m")
    assert "--substitute-variables" in server.reason("m")
