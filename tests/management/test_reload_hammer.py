"""Many clients ask a model without a break while it is changed in every way: no request fails, no answer is out of date."""

from __future__ import annotations

import shutil
import time

import pytest
from attrs import define, field

from inputs.live import LiveServer
from inputs.models import BROKEN, VALUE, config, copy, io
from inputs.repository import model, write
from management.conftest import Serve
from management.traffic import Traffic, hammered

RELOADS = 50
MODEL = "m"
CONFIG = 'backend: "python"\nversion_policy { all { } }\n'


@define
class Times:
    """When an answer may be seen: from the begin of the load that brings it to the end of the one that takes it away."""

    since: float
    until: float = float("inf")


@define
class Operator:
    """Changes the model's folder, has it loaded, and remembers which version answered with what, and when."""

    server: LiveServer
    served: dict[float, Times] = field(factory=dict)
    _stamps: dict[int, float] = field(factory=dict)

    def write(self, version: int) -> None:
        """A new file for a version, with an answer of its own."""
        stamp = float(len(self.served) + 1)
        write(self.server.repository, {f"{MODEL}/{version}/model.py": VALUE.format(value=stamp)})
        self.served[stamp] = Times(time.monotonic())
        old, self._stamps[version] = self._stamps.get(version), stamp
        self._load()
        if old is not None:
            self.served[old].until = time.monotonic()

    def remove(self, version: int) -> None:
        shutil.rmtree(self.server.repository / MODEL / str(version))
        self._load()
        self._ended(version)

    def unload(self, version: int) -> None:
        """Unload one version; the next load brings it back."""
        assert self.server.unload(MODEL, {"versions": str(version)}).status == 200
        self._ended(version)
        self.write(version)

    def push_broken(self, version: int) -> None:
        write(self.server.repository, {f"{MODEL}/{version}/model.py": BROKEN})
        assert "no_such_module_xyz" in self.server.load(MODEL).error
        shutil.rmtree(self.server.repository / MODEL / str(version))
        self._load()

    def _load(self) -> None:
        reply = self.server.load(MODEL)
        assert reply.status == 200, reply.body

    def _ended(self, version: int) -> None:
        self.served[self._stamps.pop(version)].until = time.monotonic()

    def strays(self, traffic: Traffic) -> list[str]:
        """The answers that no version gave that served while the request ran."""
        return [
            f"{call.what}: {call.answer}"
            for call in traffic.calls
            if (times := self.served.get(call.answer)) is None or call.ended < times.since or times.until < call.began
        ]


@pytest.mark.heavy
@pytest.mark.timeout(400)
@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_no_request_fails_and_no_answer_is_out_of_date(serve: Serve, isolation: str) -> None:
    place = f'parameters {{ key: "isolation" value {{ string_value: "{isolation}" }} }}\n'
    server = serve({f"{MODEL}/config.pbtxt": CONFIG + place + io(dims="1")})
    operator = Operator(server)
    operator.write(1)
    with hammered(server, MODEL, 4, pinned="1") as traffic:
        for reload in range(RELOADS):
            operator.write(1)
            match reload % 5:
                case 0:
                    operator.write(2)
                case 1:
                    operator.push_broken(3)
                case 2:
                    operator.unload(2)
                case 3:
                    operator.remove(2)
                case _:
                    assert server.load(MODEL, {"reload": "always"}).status == 200
    assert not traffic.failures, traffic.failures[:5]
    assert not (strays := operator.strays(traffic)), strays[:5]
    assert len({call.answer for call in traffic.calls}) > RELOADS / 2
    assert server.states(MODEL) == {"1": "READY", "2": "UNAVAILABLE", "3": "UNAVAILABLE"}


def test_an_ensemble_serves_while_its_parts_are_replaced(serve: Serve) -> None:
    steps = """
        step { model_name: "first" model_version: -1 input_map { key: "X" value: "X" } output_map { key: "Y" value: "m" } }
        step { model_name: "last" model_version: -1 input_map { key: "X" value: "m" } output_map { key: "Y" value: "Y" } }
    """
    files = {
        **model("first", copy()),
        **model("last", {"config.pbtxt": config(), "1/model.py": VALUE.format(value=1.0)}),
        **model("both", {"config.pbtxt": f'platform: "ensemble" {io()} ensemble_scheduling {{ {steps} }}', "1/": ""}),
    }
    server = serve(files, "--load-model=both")
    with hammered(server, "both", 2) as traffic:
        for number in range(2, 7):
            server.add("last", {f"{number}/model.py": VALUE.format(value=float(number))})
            assert server.load("last").status == 200
            assert server.load("first", {"reload": "always"}).status == 200
            assert server.output("both") == [float(number)]
    assert not traffic.failures, traffic.failures[:5]
    assert {call.answer for call in traffic.calls} <= {1.0, 2.0, 3.0, 4.0, 5.0, 6.0}
    assert server.states("both") == {"1": "READY"}
