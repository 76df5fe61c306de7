"""Settings, and which of TensorRT's packages is used."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from fake_cuda import FakeCuda
from fake_tensorrt import FakeTensorRt, ILogger
from simulated_gpus import Simulation, add_sub

from moorage.config.schema import ModelConfig, OptimizationPolicy
from moorage.config.schema.optimization import Cuda
from moorage.errors import ConfigError, ModelError, PluginError, Unsupported
from moorage_tensorrt.backend import TensorRtBackend
from moorage_tensorrt.log import make_log
from moorage_tensorrt.settings import TensorRtSettings, read_settings

Make = Callable[..., Any]


def test_defaults(context: Make) -> None:
    assert read_settings(context()) == TensorRtSettings()


def test_settings_by_their_names(context: Make) -> None:
    server = {
        "version-compatible": "true",
        "plugins": '"/a.so;/b.so"',
        "execution-policy": "DEVICE_BLOCKING",
        "coalesce-request-input": "false",
        "runtime": "lean",
    }
    found = read_settings(context(server=server, execution_context_allocation_strategy="ON_PROFILE_CHANGE"))
    assert found == TensorRtSettings(True, ("/a.so", "/b.so"), "lean", "ON_PROFILE_CHANGE")


@pytest.mark.parametrize(
    "server, parameters, told",
    [
        ({"version-compatible": "maybe"}, {}, r"--backend-config\.version-compatible: 'maybe' is not true or false"),
        ({"execution-policy": "FAST"}, {}, r"execution-policy: 'FAST' is not one of DEVICE_BLOCKING, BLOCKING"),
        ({"runtime": "x"}, {}, r"runtime: 'x' is not one of auto, full, lean, dispatch"),
        (
            {},
            {"execution_context_allocation_strategy": "X"},
            r"parameters\.execution_context_allocation_strategy: 'X' is not one of",
        ),
    ],
)
def test_a_wrong_setting_is_a_config_error(context: Make, server: Any, parameters: Any, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        read_settings(context(server=server, **parameters))


def test_plans_over_several_gpus_are_refused(context: Make) -> None:
    with pytest.raises(Unsupported, match="model 'm': plans that run on several GPUs at once are not supported"):
        read_settings(context(enable_multi_device="true"))


def test_cuda_graphs_are_told_to_be_without_effect(context: Make, caplog: pytest.LogCaptureFixture) -> None:
    read_settings(context(config=ModelConfig(optimization=OptimizationPolicy(cuda=Cuda(graphs=True)))))
    assert "model 'm': optimization.cuda.graphs has no effect" in caplog.text


def test_memory_may_be_allocated_when_the_profile_changes(instance: Make) -> None:
    assert instance(add_sub())._contexts[0].context.strategy.name == "STATIC"
    adder = instance(add_sub(), execution_context_allocation_strategy="ON_PROFILE_CHANGE")
    assert adder._contexts[0].context.strategy.name == "ON_PROFILE_CHANGE"


def test_plans_with_code_need_the_switch(load: Make) -> None:
    with pytest.raises(ModelError, match=r"host code is not allowed.*version-compatible=true"):
        load(add_sub(compatible=True))
    assert load(add_sub(compatible=True), server={"version-compatible": "true"}).signature() is not None


@pytest.mark.parametrize(
    "module, runtime", [("tensorrt_lean", "auto"), ("tensorrt_dispatch", "dispatch"), ("tensorrt_lean", "lean")]
)
def test_the_package_that_is_installed_is_used(load: Make, simulation: Simulation, module: str, runtime: str) -> None:
    simulation.only(module)
    assert load(add_sub(), server={"runtime": runtime}).signature() is not None


def test_without_tensorrt_the_error_says_what_to_install(load: Make, simulation: Simulation) -> None:
    simulation.only("tensorrt_lean")
    with pytest.raises(PluginError, match=r"model 'm': .*needs TensorRT.*tensorrt_dispatch: .*moorage-tensorrt\[full\]"):
        load(add_sub(), server={"runtime": "dispatch"})


def test_a_plan_for_rtx_needs_that_package(load: Make) -> None:
    real = Path(__file__).parent / "plans" / "add_sub_rtx.plan"
    if "tensorrt_rtx" not in sys.modules:
        with pytest.raises(PluginError, match=r"tensorrt_rtx.*moorage-tensorrt\[rtx\]"):
            load(real.read_bytes())


def test_an_old_tensorrt_is_refused(load: Make, simulation: Simulation) -> None:
    simulation.trt.__version__ = "8.6.1"
    with pytest.raises(PluginError, match=r"model 'm': TensorRT 8\.6\.1 is too old, 10 or newer is needed"):
        load(add_sub())


def test_libraries_with_layers_are_loaded_once(context: Make, simulation: Simulation) -> None:
    backend, library = TensorRtBackend(), "libm.so.6"
    for _ in range(2):
        backend.load(context(add_sub(), server={"plugins": library})).close()
    assert simulation.trt.libraries == 1


def test_a_library_that_cannot_be_loaded_is_named(load: Make) -> None:
    with pytest.raises(
        ModelError, match=r"model 'm': cannot load '/no/such\.so', which --backend-config=tensorrt,plugins names"
    ):
        load(add_sub(), server={"plugins": "/no/such.so"})


def test_the_log_of_tensorrt_goes_into_the_log(caplog: pytest.LogCaptureFixture) -> None:
    log = make_log(FakeTensorRt(FakeCuda()))  # type: ignore[arg-type]
    with caplog.at_level(logging.WARNING):
        log.log(ILogger.Severity.INFO, "loading")
        log.log(ILogger.Severity.WARNING, "slow")
        log.log(ILogger.Severity.ERROR, "broken")
    assert [record.getMessage() for record in caplog.records] == ["TensorRT: slow", "TensorRT: broken"]
    assert (log.take(), log.take()) == ("broken", "it gives no reason")


def test_a_policy_without_graphs_says_nothing(context: Make, caplog: pytest.LogCaptureFixture) -> None:
    read_settings(evolve(context(), config=ModelConfig(name="m", optimization=OptimizationPolicy())))
    assert not caplog.text
