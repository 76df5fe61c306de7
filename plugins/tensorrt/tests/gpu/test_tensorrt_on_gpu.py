"""The real thing, wherever there is a GPU and a TensorRT that can build plans for it."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from moorage.errors import RequestError
from moorage.server import Server
from moorage.testing import RepositoryBuilder
from moorage_tensorrt import driver

NO_GPU = driver.trouble()
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(bool(NO_GPU), reason=f"no test on a GPU: {NO_GPU}")]


@pytest.fixture(scope="module")
def trt() -> ModuleType:
    """A TensorRT with a builder."""
    reasons = []
    for name in ("tensorrt", "tensorrt_rtx"):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # those of an import are TensorRT's own
                return importlib.import_module(name)
        except Exception as error:  # what is missing may raise anything
            reasons.append(f"{name}: {error}")
    pytest.skip(f"no TensorRT with a builder is installed ({'; '.join(reasons)})")


def profiles(*ranges: tuple[int, int, int]) -> list[dict[str, list[tuple[int, int]]]]:
    """For each range of rows, the shapes of LEFT and RIGHT."""
    return [{name: [(rows, 3) for rows in one] for name in ("LEFT", "RIGHT")} for one in ranges]


@pytest.fixture(scope="module")
def build(trt: ModuleType) -> Callable[..., bytes]:
    """A plan of `add_sub` for this GPU, with these profiles."""

    def build(*ranges: tuple[int, int, int]) -> bytes:
        builder = trt.Builder(trt.Logger(trt.Logger.ERROR))
        network, config = builder.create_network(0), builder.create_builder_config()
        left, right = (network.add_input(name, trt.float32, (-1, 3)) for name in ("LEFT", "RIGHT"))
        for name, operation in (("TOTAL", trt.ElementWiseOperation.SUM), ("GAP", trt.ElementWiseOperation.SUB)):
            result = network.add_elementwise(left, right, operation).get_output(0)
            result.name = name
            network.mark_output(result)
        for shapes in profiles(*ranges):
            profile = builder.create_optimization_profile()
            for name, (least, best, most) in shapes.items():
                profile.set_shape(name, least, best, most)
            config.add_optimization_profile(profile)
        return bytes(builder.build_serialized_network(network, config))

    return build


@pytest.fixture
def serve(tmp_path: Path) -> Any:
    """`serve(plan, config)`: a server with this model as "adder"."""
    servers: list[Server] = []

    def serve(plan: bytes, config: str = "") -> Server:
        repository = RepositoryBuilder(tmp_path / "models")
        repository.add("adder", {"1/model.plan": plan}, config=config)
        server = Server(model_repository=repository.path)
        servers.append(server)
        server.start()
        return server

    yield serve
    for server in servers:
        server.close()


def check(server: Server, rows: int, seed: int = 0) -> None:
    rng = np.random.default_rng(seed)
    left, right = (rng.normal(size=(rows, 3)).astype(np.float32) for _ in range(2))
    answer = server.infer("adder", {"LEFT": left, "RIGHT": right})
    np.testing.assert_allclose(answer["TOTAL"], left + right, rtol=1e-6)
    np.testing.assert_allclose(answer["GAP"], left - right, rtol=1e-6, atol=1e-6)


def test_completes_and_computes(build: Callable[..., bytes], serve: Any) -> None:
    server = serve(build((1, 4, 8)))
    assert server.config("adder").max_batch_size == 8
    for rows in (1, 8, 3):
        check(server, rows)


def test_many_clients_and_instances(build: Callable[..., bytes], serve: Any) -> None:
    server = serve(build((1, 4, 8)), "instance_group { kind: KIND_GPU count: 3 } dynamic_batching {}")
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda seed: check(server, 1 + seed % 8, seed), range(200)))


def test_profiles(build: Callable[..., bytes], serve: Any) -> None:
    server = serve(build((1, 2, 4), (5, 32, 64)), 'instance_group { kind: KIND_GPU profile: [ "0", "1" ] }')
    for rows in (1, 4, 5, 64):
        check(server, rows)
    with pytest.raises(RequestError):
        check(server, 65)


def test_loads_and_unloads_leave_the_memory_as_it_was(build: Callable[..., bytes], tmp_path: Path) -> None:
    from cuda.bindings import runtime

    repository = RepositoryBuilder(tmp_path / "models")
    repository.add("adder", {"1/model.plan": build((1, 4, 8))})
    free = []
    with Server(model_repository=repository.path, model_control_mode="explicit") as server:
        for _ in range(20):
            server.load("adder")
            check(server, 2)
            server.unload("adder")
            free.append(runtime.cudaMemGetInfo()[1])
    assert free[-1] >= free[4] - 2**20


def test_a_broken_plan_is_an_error_and_the_server_goes_on(build: Callable[..., bytes], tmp_path: Path) -> None:
    good = build((1, 4, 8))
    repository = RepositoryBuilder(tmp_path / "models")
    for name, plan in {"adder": good, "cut": good[: len(good) // 2], "noise": good[:64] + bytes(5000)}.items():
        repository.add(name, {"1/model.plan": plan})
    with Server(model_repository=repository.path, model_control_mode="explicit") as server:
        for name in ("cut", "noise"):
            with pytest.raises(Exception, match=f"model '{name}'"):
                server.load(name)
        server.load("adder")
        check(server, 1)
