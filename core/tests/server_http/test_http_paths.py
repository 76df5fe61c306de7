"""Paths, methods, and what is refused before anything is done."""

from typing import Any

import pytest

from moorage._server.http import paths
from moorage.errors import NotFound, RequestError
from moorage.types import LATEST


@pytest.mark.parametrize(
    "method,path,status",
    [
        ("GET", "/", 404),
        ("GET", "/v2", 200),
        ("GET", "/v2/", 404),
        ("POST", "/v2", 405),
        ("GET", "/v2/nothing", 404),
        ("GET", "/v1", 404),
        ("GET", "/v2/health", 404),
        ("GET", "/v2/health/awake", 404),
        ("GET", "/v2/health/live", 200),
        ("GET", "/v2/health/live?x=1", 200),
        ("GET", "/v2/health/live/", 404),
        ("POST", "/v2/health/live", 405),
        ("HEAD", "/v2/health/live", 405),
        ("OPTIONS", "/v2/health/live", 405),
        ("OPTIONS", "/v2/nothing", 404),
        ("GET", "/v2//health/live", 404),
        ("GET", "/v2/models", 404),
        ("GET", "/v2/models/", 404),
        ("GET", "/v2/models/ident", 200),
        ("GET", "/v2/models/ident/", 404),
        ("GET", "/v2/models/ident/nothing", 404),
        ("DELETE", "/v2/models/ident", 405),
        ("POST", "/v2/models/ident", 405),
        ("POST", "/v2/models/ident/ready", 405),
        ("POST", "/v2/models/ident/config", 405),
        ("POST", "/v2/models/ident/stats", 405),
        ("GET", "/v2/models/ident/infer", 405),
        ("PUT", "/v2/models/ident/infer", 405),
        ("GET", "/v2/models/ident/versions/1/infer", 405),
        ("GET", "/v2/models/ident/versions/01", 200),
        ("GET", "/v2/models/ident/versions/1/ready", 200),
        ("GET", "/v2/models/ident/versions/7/ready", 400),
        ("GET", "/v2/models/ident/versions/abc", 404),
        ("GET", "/v2/models/ident/versions/abc/ready", 404),
        ("GET", "/v2/models/ident/versions/-1", 404),
        ("GET", "/v2/models/ident/versions/99/config", 404),
        ("GET", "/v2/models/ident/versions/99/stats", 400),
        ("POST", "/v2/models/ident/versions/-1/infer", 404),
        ("GET", "/v2/models/unheard_of", 404),
        ("GET", "/v2/models/unheard_of/ready", 400),
        ("GET", "/v2/models/unheard_of/config", 404),
        ("GET", "/v2/models/unheard_of/stats", 400),
        ("GET", "/v2/repository/index", 405),
        ("POST", "/v2/repository/index", 200),
        ("POST", "/v2/repository/somewhere/index", 200),
        ("POST", "/v2/repository/models/ident/load", 200),
        ("POST", "/v2/repository/models/ident/load/", 200),
        ("POST", "/v2/repository/models/ident/unload/", 200),
        ("GET", "/v2/repository/models/ident/load", 405),
        ("POST", "/v2/repository/models/ident/reload", 404),
        ("POST", "/v2/repository/models/ident", 404),
        ("POST", "/v2/repository/somewhere/models/ident/load", 501),
        ("POST", "/v2/repository/somewhere/models/ident/unload", 501),
        ("PUT", "/v2/logging", 405),
        ("GET", "/metrics", 404),
    ],
)
async def test_status_of_paths(any_client: Any, method: str, path: str, status: int) -> None:
    answer = await any_client.ask(method, path)
    assert answer.status == status
    if status >= 400:
        assert answer.headers["content-type"] == "application/json"
        assert answer.json["error"]


async def test_refused_method_names_the_right_one(client: Any) -> None:
    answer = await client.ask("DELETE", "/v2/models/ident")
    assert answer.headers["allow"] == "GET"


HOSTILE = [
    "..",
    "%2e%2e",
    "%2e%2e%2fx",
    "%2e%2e%2f%2e%2e",
    "..%5cx",
    "a%5cb",
    ".",
    "%20%20",
    "a%00b",
    "a" * 300,
    "%2Fetc%2Fpasswd",
    "ns::..",
    "ns::a%2F..",
]


@pytest.mark.parametrize(
    "method,form",
    [
        ("GET", "/v2/models/{}"),
        ("GET", "/v2/models/{}/config"),
        ("GET", "/v2/models/{}/ready"),
        ("GET", "/v2/models/{}/stats"),
        ("POST", "/v2/models/{}/infer"),
        ("POST", "/v2/repository/models/{}/load"),
        ("POST", "/v2/repository/models/{}/unload"),
    ],
)
async def test_hostile_names_reach_nobody(client: Any, admin: Any, inference: Any, method: str, form: str) -> None:
    for name in HOSTILE:
        answer = await client.ask(method, form.format(name))
        assert answer.status in (400, 404), name
    assert not admin.told
    assert not inference.seen


@pytest.mark.parametrize(
    "segment,name",
    [
        ("My-Model.v2_1", "My-Model.v2_1"),
        ("a%20b", "a b"),
        ("caf%C3%A9", "café"),
        ("ns::ident", "ns::ident"),
        ("file:%2F%2F%2Frepo::ident", "file:///repo::ident"),
        ("100%25", "100%"),
    ],
)
async def test_unusual_names_are_decoded_once(client: Any, admin: Any, inference: Any, segment: str, name: str) -> None:
    assert (await client.ask("POST", f"/v2/repository/models/{segment}/load")).status == 200
    assert admin.told[0][1] == name
    body = {"inputs": [{"name": "X", "datatype": "INT8", "shape": [1], "data": [1]}]}
    assert (await client.post(f"/v2/models/{segment}/infer", body)).json["model_name"] == name


def test_infer_segments() -> None:
    assert paths.infer_segments(b"/v2/models/m/infer") == ("m", "")
    assert paths.infer_segments(b"/v2/models/m/versions/3/infer") == ("m", "3")
    for other in (
        b"/v2/models/m/versions/infer",
        b"/v2/models/a/b/infer",
        b"/v2/models/infer",
        b"/v2/models/m/versions//infer",
    ):
        assert paths.infer_segments(other) is None


def test_targets() -> None:
    assert paths.target("m") == ("m", LATEST)
    assert paths.target("m", "01") == ("m", 1)
    with pytest.raises(NotFound, match="abc"):
        paths.target("m", "abc")
    with pytest.raises(RequestError, match="name of a model"):
        paths.target("")
