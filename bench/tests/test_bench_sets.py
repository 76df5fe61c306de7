"""Each set's machinery, for a fraction of a second, against stubs."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from attrs import evolve
from moorage_bench import cli, load, requests
from moorage_bench.cost import Cost, answered
from moorage_bench.frameworks import FRAMEWORKS
from moorage_bench.frameworks.framework import ADD_SUB, BUSY
from moorage_bench.inprocess import bare_instance
from moorage_bench.install import MissingPeerError
from moorage_bench.plan import Plan
from moorage_bench.report import Report
from moorage_bench.servers import Running, ServerSpec, serving
from moorage_bench.sets import SETS, backends
from moorage_bench.stores import Store, download

StubSide = Callable[..., Callable[[Path], ServerSpec]]


@pytest.mark.parametrize(
    "name,titles",
    [
        ("http_identity", ["64 B, 1 conn.", "64 B, 16 conn.", "16 MiB, 1 conn."]),
        ("grpc_identity", ["64 B, 1 at a time", "64 B, 16 at a time"]),
        ("onnx_json", ["simple, 16 conn."]),
    ],
)
def test_set_measures_both_sides_in_turn(plan: Plan, name: str, titles: list[str]) -> None:
    points = SETS[name](plan)
    assert [point.title for point in points if point.unit == "requests/s"] == titles
    for point in points:
        assert point.subject == "moorage"
        assert {len(values) for values in point.readings.values()} == {plan.rounds}
        assert all(value > 0 for values in point.readings.values() for value in values if point.unit == "requests/s")


def test_threaded_side_has_its_own_point_without_an_aim(plan: Plan) -> None:
    rates = [point for point in SETS["grpc_identity"](evolve(plan, with_thread=True)) if point.unit == "requests/s"]
    assert [(point.subject, point.aim is None) for point in rates[:2]] == [("moorage", False), ("moorage-thread", True)]


def test_wrong_answers_are_not_measured_and_the_next_set_runs(plan: Plan, stub_side: StubSide) -> None:
    wrong = evolve(plan, sides=evolve(plan.sides, triton=stub_side("triton", "--wrong")))
    report = Report()
    cli.run(["http_identity", "onnx_json"], wrong, report)
    assert "triton: the answer to" in report.skipped["http_identity"]
    assert list(report.points) == ["onnx_json"]


def test_a_side_that_cannot_start_is_named(plan: Plan, stub_side: StubSide) -> None:
    def broken(repository: Path) -> ServerSpec:
        return evolve(stub_side("mlserver")(repository), argv=("/nowhere/mlserver",))

    report = Report()
    cli.run(["onnx_json"], evolve(plan, sides=evolve(plan.sides, mlserver=broken)), report)
    assert "mlserver: cannot be started" in report.skipped["onnx_json"]


def test_servers_are_ended_by_an_interrupt(plan: Plan) -> None:
    pids: list[int] = []
    with pytest.raises(KeyboardInterrupt):
        interrupted_run(plan, pids)
    assert len(pids) == 2
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def interrupted_run(plan: Plan, pids: list[int]) -> None:
    specs = [plan.sides.moorage(plan.workspace), plan.sides.triton(plan.workspace)]
    with serving(specs, plan.folder("logs")) as servers:
        for server in servers.values():
            os.kill(server.pid, 0)
            pids.append(server.pid)
        raise KeyboardInterrupt


def test_backends_are_measured_beside_the_bare_framework(plan: Plan) -> None:
    points = backends.measure(plan, ["onnx"])
    assert [(point.title, point.subject, point.base) for point in points] == [
        ("onnx, 128 B", "moorage", "bare"),
        ("onnx, 128 B", "instance", "bare"),
        ("onnx, 8 MiB", "moorage", "bare"),
        ("onnx, 8 MiB", "instance", "bare"),
        ("onnx, two instances", "2 instances", "1 instance"),
    ]
    assert all(value > 0 for point in points for values in point.readings.values() for value in values)


def test_a_framework_that_is_not_installed_is_left_out(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingPeerError, match="none of onnx is installed"):
        backends.measure(evolve(plan, progress=said.append), ["onnx"])
    assert "onnx: not measured" in said[0]


@pytest.mark.heavy
@pytest.mark.parametrize("name", [name for name in FRAMEWORKS if name != "onnx"])
def test_models_of_each_framework_do_what_they_should(name: str, tmp_path: Path) -> None:
    framework = FRAMEWORKS[name]
    root = framework.repository(tmp_path)
    inputs = framework.inputs(4)
    with bare_instance(root, ADD_SUB, framework.filename) as instance:
        total, gap = (result for _, result in sorted(dict(instance(inputs)).items()))
    left, right = inputs.values()
    assert (total == left + right).all() and (gap == left - right).all()
    framework.bare(root / ADD_SUB / "1")(inputs)
    with bare_instance(root, f"{BUSY}_1", framework.filename) as instance:
        (result,) = dict(instance(framework.busy_input())).values()
    assert result.shape == framework.busy_input().popitem()[1].shape


def test_reloads_are_measured_beside_none(plan: Plan) -> None:
    points = SETS["reload"](plan)
    assert [(point.title, point.unit, point.aim is None) for point in points] == [
        ("p99, reloads / none", "x", False),
        ("slowest, reloads / none", "x", False),
        ("p99, reloads", "ms", True),
        ("slowest, reloads", "ms", True),
    ]
    assert all(len(values) == plan.rounds and min(values) > 0 for point in points for values in point.readings.values())


def test_a_slow_load_is_measured_beside_none(plan: Plan) -> None:
    points = SETS["slow_load"](plan)
    assert [point.title for point in points] == ["p99, load / none", "slowest, load / none"]
    assert all(len(values) == plan.rounds and min(values) > 0 for point in points for values in point.readings.values())


def test_a_reload_that_is_refused_is_told(plan: Plan, stub_side: StubSide) -> None:
    report = Report()
    cli.run(["reload"], evolve(plan, sides=evolve(plan.sides, moorage=stub_side("moorage", "--no-loads"))), report)
    assert "/v2/repository/models/identity/load answers 400" in report.skipped["reload"]


def test_memory_is_compared_with_that_after_the_tenth_cycle(plan: Plan) -> None:
    (point,) = SETS["memory"](plan)
    assert (point.title, point.subject, point.base) == ("50 MB ONNX, malloc", "after 12", "after 10")
    assert all(values[0] > 1 for values in point.readings.values())
    assert point.aim is not None


def test_other_allocators_are_measured_where_they_can_be_had(plan: Plan) -> None:
    other = evolve(plan, tools=evolve(plan.tools, allocators=lambda: {"other": Path()}))
    assert [point.title for point in SETS["memory"](other)] == ["50 MB ONNX, malloc", "50 MB ONNX, other"]


@pytest.mark.heavy
def test_repositories_in_s3_are_measured_beside_other_clients(plan: Plan) -> None:
    stub = evolve(plan, rounds=1, tools=evolve(plan.tools, s3_clients=lambda: {"boto3": Path(sys.executable)}))
    points = {point.title: point for point in SETS["storage"](stub)}
    assert list(points) == [
        "50 small files + 2 MiB",
        "50 small files + 2 MiB, CPU",
        "memory for a download",
        "requests a poll, 10 models",
        "objects read, 10 models",
    ]
    assert all(values[0] > 0 for values in points["50 small files + 2 MiB"].readings.values())
    assert points["requests a poll, 10 models"].ratio == 1
    assert list(points["objects read, 10 models"].readings["second start"]) == [0]
    assert points["objects read, 10 models"].readings["first start"][0] >= 10


def test_a_client_that_fails_is_told(tmp_path: Path) -> None:
    nowhere = Store("http://127.0.0.1:1")
    with pytest.raises(load.LoadError, match="aws cannot download"):
        download("aws", Path(sys.executable), nowhere, tmp_path / "target")


def test_cost_is_processor_time_by_answered_request(plan: Plan) -> None:
    with serving([plan.sides.moorage(plan.workspace)], plan.folder("logs")) as servers:
        server = servers["moorage"]
        cost = Cost(server, "identity")

        def four_requests(server: Running, seconds: float) -> float:
            for _ in range(4):
                load.check(server, requests.identity_binary(16))
            return 1.0

        answered_before, start = answered(server, "identity"), time.perf_counter()
        cost.metered(four_requests)(0.3)
        elapsed = time.perf_counter() - start
        assert answered(server, "identity") - answered_before == 4
        assert 0 < cost.microseconds[0] * 4 / 1e6 < elapsed * (os.cpu_count() or 1)
