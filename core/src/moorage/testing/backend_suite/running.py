# ruff: noqa: S101 - a suite consists of assertions
"""Running: results, batches, inputs in any form, several instances and clients at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import evolve

from moorage.config.schema import DynamicBatching
from moorage.errors import MoorageError, RequestError
from moorage.server import Server
from moorage.testing.backend_suite.base import BackendSuite
from moorage.testing.backend_suite.comparing import assert_close
from moorage.testing.driving import Arrays, Runner

Change = Callable[[dict[str, np.ndarray]], object]
BAD_REQUESTS: Mapping[str, Change] = {
    "an input of another name": lambda inputs: inputs.update(NO_SUCH_INPUT=inputs.pop("RIGHT")),
    "an input too many": lambda inputs: inputs.update(NO_SUCH_INPUT=inputs["RIGHT"]),
    "an input left out": lambda inputs: inputs.pop("RIGHT"),
    "no input": lambda inputs: inputs.clear(),
    "another data type": lambda inputs: inputs.update(RIGHT=inputs["RIGHT"].astype(np.float64)),
    "text for numbers": lambda inputs: inputs.update(RIGHT=np.array([["1", "2", "3"]])),
    "another size": lambda inputs: inputs.update(RIGHT=np.zeros((1, 4), np.float32)),
    "a dimension too few": lambda inputs: inputs.update(RIGHT=np.zeros(3, np.float32)),
    "a dimension too many": lambda inputs: inputs.update(RIGHT=np.zeros((1, 1, 3), np.float32)),
    "batches that differ": lambda inputs: inputs.update(RIGHT=np.zeros((2, 3), np.float32)),
    "an empty batch": lambda inputs: inputs.update({name: np.zeros((0, 3), np.float32) for name in inputs}),
    "a batch too large": lambda inputs: inputs.update({name: np.zeros((1000, 3), np.float32) for name in inputs}),
}


class RunningTests(BackendSuite):
    """What one instance computes, and what many do at once."""

    def test_computes(self, adder: Runner) -> None:
        left, right = np.array([[1, 2, 3]], np.float32), np.array([[10, 20, 0.5]], np.float32)
        assert_close(adder.one({"LEFT": left, "RIGHT": right}), {"TOTAL": left + right, "GAP": left - right})

    def test_gives_only_the_wanted_outputs(self, adder: Runner, rng: np.random.Generator) -> None:
        inputs = self.add_sub().sample(rng)
        assert_close(adder.one(inputs, ["GAP"]), {"GAP": inputs["LEFT"] - inputs["RIGHT"]})

    def test_batch_gives_what_single_requests_give(self, adder: Runner, rng: np.random.Generator) -> None:
        requests = [self.add_sub().sample(rng, rows) for rows in (1, 3, 2)]
        for together, alone in zip(adder.together(requests), map(adder.one, requests), strict=True):
            assert_close(together, alone)

    def test_the_scheduler_s_batches_give_what_single_requests_give(self, tmp_path: Path, rng: np.random.Generator) -> None:
        case = self.add_sub()
        config = evolve(case.configured(self.backend.name), scheduling=DynamicBatching(max_queue_delay_microseconds=100_000))
        case.put(tmp_path, config)
        requests = [case.sample(rng) for _ in range(config.max_batch_size)]
        with self.served(tmp_path, backend_config=self.settings(case)) as server:
            server.load(case.name)
            answers = [server.submit(case.name, request) for request in requests]
            for request, answer in zip(requests, answers, strict=True):
                assert_close(dict(answer.result(30)), _sum_and_difference(request))

    def test_takes_inputs_that_are_read_only_or_strided(self, adder: Runner) -> None:
        left = np.frombuffer(np.arange(6, dtype=np.float32).tobytes(), dtype=np.float32).reshape(2, 3)
        right = np.arange(12, dtype=np.float32).reshape(2, 6)[:, ::2]
        assert_close(adder.one({"LEFT": left, "RIGHT": right}), {"TOTAL": left + right, "GAP": left - right})

    def test_takes_inputs_that_begin_at_any_byte(self, adder: Runner) -> None:
        left = np.frombuffer(b"?" + np.arange(3, dtype=np.float32).tobytes(), np.float32, offset=1).reshape(1, 3)
        right = np.ones((1, 3), np.float32)
        assert_close(adder.one({"LEFT": left, "RIGHT": right}), {"TOTAL": left + right, "GAP": left - right})

    def test_leaves_inputs_as_they_are(self, adder: Runner, rng: np.random.Generator) -> None:
        inputs = self.add_sub().sample(rng)
        kept = {name: array.copy() for name, array in inputs.items()}
        adder.one(inputs)
        assert_close(inputs, kept)

    def test_keeps_results_of_earlier_runs(self, adder: Runner, rng: np.random.Generator) -> None:
        inputs = self.add_sub().sample(rng)
        first = adder.one(inputs)
        kept = {name: array.copy() for name, array in first.items()}
        for _ in range(5):
            adder.one(self.add_sub().sample(rng))
        assert_close(first, kept)

    def test_results_outlive_the_model(self, tmp_path: Path, rng: np.random.Generator) -> None:
        inputs = self.add_sub().sample(rng)
        with self.runner(self.add_sub(), tmp_path) as runner:
            result = runner.one(inputs)
        assert_close(result, _sum_and_difference(inputs))

    @pytest.mark.parametrize(
        "inputs",
        [
            pytest.param({"LEFT": np.zeros((1, 3), np.float32)}, id="an input left out"),
            pytest.param({"LEFT": np.zeros((1, 3), np.float32), "RIGHT": np.zeros((1, 4), np.float32)}, id="sizes that differ"),
        ],
    )
    def test_refuses_inputs_and_goes_on(self, adder: Runner, inputs: dict[str, Any], rng: np.random.Generator) -> None:
        good = self.add_sub().sample(rng)
        wanted = adder.one(good)
        with pytest.raises(MoorageError, match=self.add_sub().name):
            adder.one(inputs)
        assert_close(adder.one(good), wanted)

    def test_instances_run_at_the_same_time(self, tmp_path: Path, rng: np.random.Generator) -> None:
        case = self.add_sub()
        context = case.context(tmp_path, instances=2)
        samples = [case.sample(rng, rows=4) for _ in range(50)]

        def work(runner: Runner) -> None:
            for inputs in samples:
                assert_close(runner.one(inputs), _sum_and_difference(inputs))

        with self.loaded(context) as model, ThreadPoolExecutor(2) as pool:
            runners = [Runner(model.instance(placement), case.config) for placement in context.placements]
            list(pool.map(work, runners))
            for runner in runners:
                runner.instance.close()

    def test_an_instance_outlives_another(self, tmp_path: Path, rng: np.random.Generator) -> None:
        case = self.add_sub()
        context = case.context(tmp_path, instances=2)
        with self.loaded(context) as model:
            first, second = (Runner(model.instance(placement), case.config) for placement in context.placements)
            first.instance.close()
            assert set(second.one(case.sample(rng))) == {"TOTAL", "GAP"}
            second.instance.close()

    def test_each_of_many_clients_gets_its_own_answer(self, serving: Server) -> None:
        case = self.add_sub()

        def ask(number: int) -> None:
            rng = np.random.default_rng(number)
            for rows in (1, 2, 3, 1, 4, 1):
                inputs = case.sample(rng, rows)
                assert_close(dict(serving.infer(case.name, inputs, timeout=60)), _sum_and_difference(inputs))

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(ask, range(24)))

    def test_replacing_the_model_loses_no_request(self, serving: Server, rng: np.random.Generator) -> None:
        case = self.add_sub()
        requests = [case.sample(rng) for _ in range(400)]

        def ask(inputs: Arrays) -> None:
            assert_close(dict(serving.infer(case.name, inputs, timeout=60)), _sum_and_difference(inputs))

        with ThreadPoolExecutor(2) as pool:
            asked = [pool.submit(ask, inputs) for inputs in requests]
            for _ in range(3):
                serving.load(case.name, force=True)
            for one in asked:
                one.result(60)

    def test_an_unloaded_model_answers_no_more_and_can_come_back(self, serving: Server, rng: np.random.Generator) -> None:
        case = self.add_sub()
        inputs = case.sample(rng)
        serving.unload(case.name)
        with pytest.raises(MoorageError, match=case.name):
            serving.infer(case.name, inputs)
        serving.load(case.name)
        assert_close(dict(serving.infer(case.name, inputs)), _sum_and_difference(inputs))

    @pytest.mark.parametrize("change", [pytest.param(change, id=name) for name, change in BAD_REQUESTS.items()])
    def test_a_request_that_does_not_fit_is_refused_as_the_client_s_fault(
        self, serving: Server, change: Change, rng: np.random.Generator
    ) -> None:
        case = self.add_sub()
        inputs = case.sample(rng)
        good = _sum_and_difference(inputs)
        bad = dict(inputs)
        change(bad)
        with pytest.raises(RequestError, match=case.name):
            serving.infer(case.name, bad, timeout=60)
        assert_close(dict(serving.infer(case.name, inputs, timeout=60)), good)

    def test_an_output_that_is_not_there_is_refused(self, serving: Server, rng: np.random.Generator) -> None:
        with pytest.raises(RequestError, match="NO_SUCH_OUTPUT"):
            serving.infer(self.add_sub().name, self.add_sub().sample(rng), outputs=["NO_SUCH_OUTPUT"])


def _sum_and_difference(inputs: Arrays) -> dict[str, np.ndarray]:
    return {"TOTAL": inputs["LEFT"] + inputs["RIGHT"], "GAP": inputs["LEFT"] - inputs["RIGHT"]}
