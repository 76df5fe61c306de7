"""What an operator reads: the log as JSON, and the metrics page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc
from prometheus_client.parser import text_string_to_metric_families

from inputs.conftest import Serve
from inputs.live import LiveServer
from inputs.models import BROKEN, COPY, config, copy
from inputs.repository import model, write

WARNS = "import warnings\nwarnings.warn('of the model')\n" + COPY
FAILS = COPY.replace("return [", "raise ValueError('two\\nlines') or [")
SERIES = {
    "nv_inference_request_success", "nv_inference_request_failure", "nv_inference_count", "nv_inference_exec_count",
    "nv_inference_request_duration_us", "nv_inference_queue_duration_us", "nv_inference_compute_input_duration_us",
    "nv_inference_compute_infer_duration_us", "nv_inference_compute_output_duration_us",
    "nv_inference_pending_request_count", "moorage_inference_duration_seconds_bucket",
    "moorage_inference_duration_seconds_sum", "moorage_inference_duration_seconds_count",
}  # fmt: skip


@pytest.fixture(scope="module")
def server(shared: Serve) -> LiveServer:
    server = shared(None, "--model-control-mode=explicit", "--log-format=json", "--log-verbose=1")
    server.add("warns", {"config.pbtxt": config(), "1/model.py": WARNS})
    server.add("fails", {"config.pbtxt": config(), "1/model.py": FAILS})
    server.add("broken", {"config.pbtxt": config(), "1/model.py": BROKEN})
    return server


def lines(server: LiveServer, **fields: object) -> list[dict[str, Any]]:
    """The lines of the log that have these fields; every line must be JSON."""
    found = [json.loads(line) for line in server.log.splitlines()]
    assert all({"timestamp", "level", "event"} <= line.keys() for line in found)
    return [line for line in found if fields.items() <= line.items()]


def test_loads_and_unloads_tell_model_and_version(server: LiveServer) -> None:
    server.add("lived", copy(version="7"))
    assert server.load("lived").status == 200
    assert server.unload("lived").status == 200
    states = [line["state"] for line in lines(server, model="lived", version=7)]
    assert states[0] == "LOADING"
    assert states.index("READY") < states.index("UNAVAILABLE")
    assert server.load("broken").status == 400
    (failure,) = [line for line in lines(server, model="broken", version=1, level="error") if line.get("state")]
    assert "no_such_module_xyz" in failure["reason"]


def test_requests_tell_model_version_and_id(server: LiveServer) -> None:
    server.load("warns")
    server.load("fails")
    assert server.infer("warns", [1], id='first "one"\n').status == 200
    assert server.infer("fails", [1], id="second").status >= 400
    assert server.infer("nobody", [1], id="third").status == 404
    with tritonclient.grpc.InferenceServerClient(f"127.0.0.1:{server.ports[1]}") as client:
        given = tritonclient.grpc.InferInput("X", [1], "FP32")
        given.set_data_from_numpy(np.zeros(1, np.float32))
        client.infer("warns", [given], request_id="fourth")
    (first,) = lines(server, event="infer", request_id='first "one"\n')
    assert (first["model"], first["version"]) == ("warns", 1)
    assert "error" not in first
    (second,) = lines(server, event="infer", request_id="second")
    assert "lines" in second["error"]
    (third,) = lines(server, event="infer", request_id="third")
    assert third["model"] == "nobody"
    assert lines(server, event="infer", request_id="fourth", model="warns")


def test_what_libraries_warn_of_is_json_too(server: LiveServer) -> None:
    server.load("warns")
    assert any("of the model" in line["event"] for line in lines(server, level="warning"))


def test_requests_are_not_told_unless_asked_for(server: LiveServer) -> None:
    server.load("warns")
    server.post("/v2/logging", {"log_verbose_level": 0})
    try:
        server.infer("warns", [1], id="silent")
    finally:
        server.post("/v2/logging", {"log_verbose_level": 1})
    server.infer("warns", [1], id="loud")
    assert lines(server, request_id="loud")
    assert not lines(server, request_id="silent")


def samples(server: LiveServer, name: str) -> dict[str, list[tuple[dict[str, str], float]]]:
    """Series of a model on the metrics page, by their names, each with labels and value."""
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    page = server.get("/metrics").body.decode()
    for family in text_string_to_metric_families(page):
        for one in family.samples:
            if one.labels.get("model") == name:
                found.setdefault(one.name.removesuffix("_total"), []).append((dict(one.labels), one.value))
    return found


def test_all_series_are_there_before_the_first_request_and_gone_after_unload(server: LiveServer) -> None:
    server.add("measured", copy())
    assert samples(server, "measured") == {}
    assert server.load("measured").status == 200
    before = samples(server, "measured")
    assert before.keys() == SERIES
    assert {value for found in before.values() for _, value in found} == {0}
    assert {labels["version"] for found in before.values() for labels, _ in found} == {"1"}
    assert server.unload("measured").status == 200
    assert samples(server, "measured") == {}


def test_the_histogram_counts_every_request_once(server: LiveServer) -> None:
    server.add("counted", copy())
    server.load("counted")
    for _ in range(3):
        server.infer("counted", [1])
    found = samples(server, "counted")
    buckets = [(float(labels["le"]), value) for labels, value in found["moorage_inference_duration_seconds_bucket"]]
    assert buckets == sorted(buckets)
    assert buckets[0][0] <= 0.001
    assert [value for _, value in buckets[-2:]] == [3, 3]
    assert buckets[-1][0] == float("inf")
    assert found["moorage_inference_duration_seconds_count"][0][1] == 3
    assert 0 < found["moorage_inference_duration_seconds_sum"][0][1] < 3 * max(bound for bound, _ in buckets[:-1])


def test_models_of_one_name_are_told_apart_by_their_namespace(serve: Serve, tmp_path: Path) -> None:
    places = [str(write(tmp_path / name, model("same", copy()))) for name in "ab"]
    server = serve(None, *(f"--model-repository={place}" for place in places), "--model-namespacing=true")
    found = samples(server, "same")["nv_inference_count"]
    assert sorted(labels["namespace"] for labels, _ in found) == places
