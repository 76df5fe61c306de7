"""Health, metadata, statistics, repository and log endpoints."""

import base64
from collections.abc import Callable
from typing import Any

import pytest

from moorage._server.http import Restriction, parse_restricted
from moorage.control import LoadOptions
from moorage.errors import InvalidArgument, ModelError, Unavailable


async def test_health_has_no_body(client: Any, admin: Any) -> None:
    for path in ("/v2/health/live", "/v2/health/ready", "/v2/models/ident/ready"):
        answer = await client.ask("GET", path)
        assert (answer.status, answer.body) == (200, b"")
    admin.is_ready = False
    answer = await client.ask("GET", "/v2/health/ready")
    assert (answer.status, answer.body) == (400, b"")
    assert "ident" in (await client.ask("GET", "/v2/models/ident/ready")).json["error"]


async def test_metadata(client: Any) -> None:
    answer = await client.ask("GET", "/v2")
    assert answer.headers["content-type"] == "application/json"
    assert answer.json == {"name": "moorage", "version": "9.9", "extensions": ["statistics"]}
    assert (await client.ask("GET", "/v2/models/ident")).json == {
        "name": "ident",
        "versions": ["1"],
        "platform": "python",
        "inputs": [{"name": "X", "datatype": "FP32", "shape": [-1]}],
        "outputs": [{"name": "X", "datatype": "FP32", "shape": [-1]}],
    }


async def test_config_is_the_full_json(client: Any) -> None:
    config = (await client.ask("GET", "/v2/models/ident/config")).json
    assert config["name"] == "ident"
    assert config["max_batch_size"] == 0
    assert config["input"][0]["dims"] == [-1]


async def test_statistics(client: Any) -> None:
    for path in ("/v2/models/stats", "/v2/models/ident/stats", "/v2/models/ident/versions/1/stats"):
        (one,) = (await client.ask("GET", path)).json["model_stats"]
        assert (one["name"], one["version"], one["last_inference"]) == ("ident", "1", 1700000000000)
        assert (one["inference_count"], one["execution_count"]) == (7, 3)
        assert one["inference_stats"]["fail"] == {"count": 2, "ns": 2000}
        assert set(one["inference_stats"]) == {
            "success", "fail", "queue", "compute_input", "compute_infer", "compute_output", "cache_hit", "cache_miss"
        }  # fmt: skip
        assert one["batch_stats"] == [
            {
                "batch_size": 2,
                "compute_input": {"count": 3, "ns": 10},
                "compute_infer": {"count": 3, "ns": 20},
                "compute_output": {"count": 3, "ns": 30},
            }
        ]
        assert (one["response_stats"], one["memory_usage"]) == ({}, [])


async def test_index(client: Any) -> None:
    ready = {"name": "ident", "version": "1", "state": "READY"}
    assert (await client.ask("POST", "/v2/repository/index")).json == [ready, {"name": "never"}]
    assert (await client.post("/v2/repository/index", {})).json == [ready, {"name": "never"}]
    assert (await client.post("/v2/repository/index", {"ready": True})).json == [ready]
    for body in (b"{", b'{"ready": "true"}', b"[]"):
        assert (await client.ask("POST", "/v2/repository/index", body)).status == 400


async def test_load(client: Any, admin: Any) -> None:
    path = "/v2/repository/models/ident/load"
    answer = await client.ask("POST", path)
    assert (answer.status, answer.body) == (200, b"")
    await client.post(path, {"irrelevant": 1})
    content = base64.b64encode(b"print(1)").decode()
    await client.post(path, {"parameters": {"config": "{}", "file:1/model.py": content, "reload": "always"}})
    assert admin.told == [
        ("load", "ident", LoadOptions()),
        ("load", "ident", LoadOptions()),
        ("load", "ident", LoadOptions("{}", {"1/model.py": b"print(1)"}, force=True)),
    ]


@pytest.mark.parametrize(
    "parameters,word",
    [
        ({"config": 5}, "config"),
        ({"colour": "red"}, "colour"),
        ({"file:": ""}, "file:"),
        ({"file:1/a": "no base64!"}, "file:1/a"),
        ({"file:1/a": 5}, "file:1/a"),
        ({"reload": "sometimes"}, "reload"),
        ({"versions": "one"}, "versions"),
    ],
)
async def test_wrong_load_parameters_are_named(client: Any, admin: Any, parameters: dict[str, Any], word: str) -> None:
    answer = await client.post("/v2/repository/models/ident/load", {"parameters": parameters})
    assert answer.status == 400
    assert "ident" in answer.json["error"]
    assert word in answer.json["error"]
    assert not admin.told


async def test_load_with_a_broken_body(client: Any, admin: Any) -> None:
    answer = await client.ask("POST", "/v2/repository/models/ident/load", b"{not json")
    assert answer.status == 400
    assert not admin.told


async def test_unload_takes_any_body(client: Any, admin: Any) -> None:
    path = "/v2/repository/models/ident/unload"
    for body in (b"", b"[[", b'{"parameters": {"unload_dependents": "yes"}}', b"\xff"):
        assert (await client.ask("POST", path, body)).status == 200
    await client.post(path, {"parameters": {"unload_dependents": True}})
    assert [told[2] for told in admin.told] == [False, False, False, False, True]
    assert not any(told[3] for told in admin.told)


@pytest.mark.parametrize("given", ["2", "1,2", " 2 , 2", 2])
async def test_versions_limit_a_load_and_an_unload(client: Any, admin: Any, given: object) -> None:
    await client.post("/v2/repository/models/ident/load", {"parameters": {"versions": given}})
    await client.post("/v2/repository/models/ident/unload", {"parameters": {"versions": given}})
    wanted = frozenset({1, 2} if given == "1,2" else {2})
    assert admin.told == [("load", "ident", LoadOptions(versions=wanted)), ("unload", "ident", False, wanted)]


@pytest.mark.parametrize(
    "parameters",
    [{"versions": ""}, {"versions": "1;2"}, {"versions": True}, {"versions": -1}, {"versions": [1]}, {"version": "1"}],
)
async def test_an_unload_that_is_limited_wrongly_unloads_nothing(client: Any, admin: Any, parameters: dict[str, Any]) -> None:
    answer = await client.post("/v2/repository/models/ident/unload", {"parameters": parameters})
    assert answer.status == 400
    assert "version" in answer.json["error"]
    assert not admin.told


async def test_log_settings(client: Any, admin: Any) -> None:
    assert (await client.ask("GET", "/v2/logging")).json == {"log_info": True, "log_verbose_level": 0}
    answer = await client.post("/v2/logging", {"log_verbose_level": 2})
    assert answer.json == {"log_info": True, "log_verbose_level": 2}
    assert (await client.ask("POST", "/v2/logging", b"{")).status == 400
    assert admin.settings["log_verbose_level"] == 2


async def test_errors_of_the_rooms_below(client: Any, admin: Any) -> None:
    admin.error = Unavailable("mode NONE")
    answer = await client.ask("POST", "/v2/repository/models/ident/load")
    assert (answer.status, answer.json) == (503, {"error": "mode NONE"})
    admin.error = ModelError("kaputt")
    assert (await client.ask("GET", "/v2/models/ident")).status == 500


async def test_an_unexpected_error_is_answered_and_logged(client: Any, admin: Any, caplog: pytest.LogCaptureFixture) -> None:
    admin.error = ZeroDivisionError("by nothing")
    answer = await client.ask("GET", "/v2/models/ident")
    assert (answer.status, answer.json) == (500, {"error": "by nothing"})
    assert "ZeroDivisionError" in caplog.text


async def test_restricted_groups(client_with: Callable[..., Any]) -> None:
    client = client_with(restricted=parse_restricted(["model-repository,health,inference:Admin-Key=sesame"]))
    for method, path in (("GET", "/v2/health/live"), ("POST", "/v2/repository/index"), ("POST", "/v2/models/ident/infer")):
        refused = await client.ask(method, path)
        assert refused.status == 403
        assert "admin-key" in refused.json["error"]
        assert (await client.ask(method, path, admin_key="wrong")).status == 403
        assert (await client.ask(method, path, admin_key="sesame")).status != 403
    assert (await client.ask("GET", "/v2/models/ident")).status == 200


@pytest.mark.parametrize("text", ["health", "health:key", "health:=x", "unknown:k=v", "health,health:k=v"])
def test_wrong_restrictions_are_refused(text: str) -> None:
    with pytest.raises(InvalidArgument, match="--http-restricted-api"):
        parse_restricted([text])


def test_restrictions_keep_their_value() -> None:
    assert parse_restricted(["health:K=a=b:c"]) == {"health": Restriction("k", "a=b:c")}


async def test_the_api_is_described(client: Any) -> None:
    described = (await client.ask("GET", "/docs/openapi.json")).json["paths"]
    assert "post" in described["/v2/models/{name}/infer"]
    assert "get" in described["/v2/health/live"]
