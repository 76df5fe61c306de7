"""When a server says that it is ready."""

from __future__ import annotations

import pytest

from inputs.conftest import Serve
from inputs.models import BROKEN, config, copy
from inputs.repository import model

BAD = model("bad", {"config.pbtxt": config(), "1/model.py": BROKEN})
IDENT = model("ident", copy())


def test_a_required_model_that_is_gone(serve: Serve) -> None:
    explicit = ["--model-control-mode=explicit", "--load-model=ident"]
    server = serve(IDENT, *explicit, "--required-models=ident")
    assert server.get("/v2/health/ready").status == 200
    server.unload("ident")
    assert server.get("/v2/health/ready").status != 200
    assert server.get("/v2/health/live").status == 200
    server.load("ident")
    assert server.get("/v2/health/ready").status == 200


def test_a_model_that_was_unloaded_is_not_waited_for(serve: Serve) -> None:
    server = serve({**IDENT, **BAD}, "--model-control-mode=explicit", "--load-model=ident")
    server.unload("ident")
    assert server.get("/v2/health/ready").status == 200
    assert server.load("bad").status == 400
    assert server.get("/v2/health/ready").status != 200
    server.unload("bad")
    assert server.get("/v2/health/ready").status == 200


@pytest.mark.parametrize("broken", [BAD, model("bad", {"config.pbtxt": "max_batchsize: 1", "1/model.py": BROKEN})])
def test_the_only_model_is_broken(serve: Serve, broken: dict[str, str | bytes]) -> None:
    server = serve(broken, "--exit-on-error=false")
    assert server.get("/v2/health/live").status == 200
    assert server.get("/v2/health/ready").status != 200
    (entry,) = server.index("bad")
    assert entry["state"] == "UNAVAILABLE"
    assert "no_such_module_xyz" in entry["reason"] or "max_batch_size" in entry["reason"]


def test_a_broken_model_ends_the_start_and_is_named(serve: Serve) -> None:
    with pytest.raises(RuntimeError, match=r"(?s)bad.*no_such_module_xyz"):
        serve({**BAD, **IDENT})


def test_an_empty_repository_is_ready(serve: Serve) -> None:
    server = serve(None)
    assert server.get("/v2/health/ready").status == 200
    assert server.index() == []
