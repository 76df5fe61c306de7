"""Ratios, aims, the table and the JSON; and the requests that are sent."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from moorage_bench import quiet, requests
from moorage_bench.measure import Aim, Point, in_turn
from moorage_bench.plan import Plan
from moorage_bench.report import Report


def point(aim: Aim | None) -> Point:
    return Point("tiny", "requests/s", "a", "b", {"a": (10.0, 30.0, 20.0), "b": (10.0, 10.0, 40.0)}, aim)


def test_ratio_is_of_medians_and_its_spread_of_neighbours() -> None:
    assert point(None).ratio == 2.0
    assert point(None).ratio_spread == (0.5, 3.0)


@pytest.mark.parametrize(
    "aim,met", [(Aim(2.0), True), (Aim(2.1), False), (Aim(2.0, at_most=True), True), (Aim(1.9, at_most=True), False)]
)
def test_aims(aim: Aim, met: bool) -> None:
    report = Report(points={"set": (point(aim),)})
    assert aim.met(point(aim).ratio) is met
    assert report.missed() == ([] if met else [point(aim)])
    assert ("MISSED" in report.table()) is not met


def test_an_aim_may_be_a_difference_to_the_base() -> None:
    near, far = Aim(10.0, at_most=True, beyond=True), Aim(9.0, at_most=True, beyond=True)
    assert point(near).difference == 10.0
    assert (point(near).met, point(far).met, point(None).met) == (True, False, None)
    assert "<= base + 9" in Report(points={"set": (point(far),)}).table()


def test_sides_take_turns(plan: Plan) -> None:
    calls: list[str] = []

    def side(name: str) -> float:
        calls.append(name)
        return float(len(calls))

    readings = in_turn(plan, "x", {"a": lambda _s: side("a"), "b": lambda _s: side("b")})
    assert calls == ["a", "b", "a", "b", "a", "b"]
    assert readings == {"a": (3.0, 5.0), "b": (4.0, 6.0)}


def test_report_keeps_every_reading_and_what_was_left_out(tmp_path: Path) -> None:
    report = Report(points={"set": (point(Aim(3.0)),)}, skipped={"other": "no peer"})
    written = json.loads(report.write(tmp_path).read_text())
    assert written["sets"]["set"][0]["readings"] == {"a": [10.0, 30.0, 20.0], "b": [10.0, 10.0, 40.0]}
    assert written["sets"]["set"][0]["met"] is False
    assert written["skipped"] == {"other": "no peer"}
    assert "other: not measured: no peer" in report.table()


def test_binary_request_announces_its_parts() -> None:
    request = requests.identity_binary(16)
    head = int(request.headers["Inference-Header-Content-Length"])
    assert json.loads(request.body[:head])["inputs"][0]["shape"] == [1, 16]
    assert np.frombuffer(request.body[head:], np.float32).size == 16
    assert request.expect == request.body[head:]
    assert f"Content-Length: {len(request.body)}\r\n".encode() in request.raw("h")


def test_lua_script_holds_every_byte_of_the_body(tmp_path: Path) -> None:
    request = requests.HttpRequest("/x", {"A": "b"}, bytes(range(256)), b"")
    text = re.search(r'wrk\.body = "((?:[^"\\\n]|\\\d{3})*)"\n', request.write_lua(tmp_path / "x.lua").read_text())
    assert text is not None
    assert re.sub(r"\\(\d{3})", lambda found: chr(int(found[1])), text[1]).encode("latin-1") == bytes(range(256))


def test_patience_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    shares = iter([0.9, 0.5, 0.1])
    monkeypatch.setattr(quiet, "busy_share", lambda _seconds: next(shares))
    assert quiet.await_quiet(0)
    assert quiet.await_quiet(60)
    monkeypatch.setattr(quiet, "busy_share", lambda _seconds: 0.9)
    assert not quiet.await_quiet(0.01)


def test_share_of_busy_processors_is_one() -> None:
    assert 0 <= quiet.busy_share(0.05) <= 1
