from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from moorage.backend import Placement
from moorage.config.schema import InstanceKind, ModelConfig, Parameter


def test_initialize_gets_texts(serve: Callable[..., Any]) -> None:
    served = serve("""
        class TritonPythonModel:
            def initialize(self, args):
                self.args = args
    """)
    args = served.instance._hosted._model.args
    config = json.loads(args.pop("model_config"))
    assert args == {
        "model_instance_kind": "CPU",
        "model_instance_name": "m_0_0",
        "model_instance_device_id": "0",
        "model_repository": str(served.folder.parent),
        "model_version": "1",
        "model_name": "m",
    }
    assert (config["name"], config["input"][0]["dims"]) == ("m", [-1])


def test_each_instance_has_an_object_of_its_own(serve: Callable[..., Any]) -> None:
    served = serve("class TritonPythonModel:\n    pass\n")
    other = served.model.instance(Placement("m_0_1", InstanceKind.KIND_GPU, 1))
    assert other._hosted._model is not served.instance._hosted._model
    other.close()


def test_finalize_is_called_once_at_close(serve: Callable[..., Any], tmp_path: Path) -> None:
    served = serve(f"""
        class TritonPythonModel:
            def finalize(self):
                with open({str(tmp_path / "log")!r}, "a") as log:
                    log.write("finalized ")
    """)
    assert not (tmp_path / "log").exists()
    served.instance.close()
    assert (tmp_path / "log").read_text() == "finalized "


def test_an_exception_of_finalize_is_logged(serve: Callable[..., Any], caplog: pytest.LogCaptureFixture) -> None:
    served = serve("class TritonPythonModel:\n    def finalize(self):\n        raise ValueError('stuck')\n")
    served.instance.close()
    assert "model 'm version 1': finalize raised ValueError: stuck" in caplog.text
    served.instance._hosted.close = lambda: None


def test_lines_in_the_log_name_the_model(serve: Callable[..., Any], caplog: pytest.LogCaptureFixture) -> None:
    served = serve("""
        class TritonPythonModel:
            def execute(self, requests):
                pb_utils.Logger.log_error("hello")
    """)
    served.error()
    assert "[m version 1] hello" in caplog.text


def test_unloading_frees_what_the_model_holds(serve: Callable[..., Any]) -> None:
    import gc
    import weakref

    served = serve("""
        class Weights:
            pass

        class TritonPythonModel:
            def initialize(self, args):
                self.weights = Weights()
    """)
    weights = weakref.ref(served.instance._hosted._model.weights)
    served.instance.close()
    served.model.close()
    gc.collect()
    assert weights() is None


@pytest.fixture(autouse=True)
def _closing_twice_is_harmless(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fixture `serve` closes what a test has closed already."""
    from moorage_python.runtime.host import HostedInstance

    close = HostedInstance.close
    monkeypatch.setattr(HostedInstance, "close", lambda self: close(self) if self._model is not None else None)


def test_lines_of_every_level_reach_the_server_s_log(serve: Callable[..., Any], caplog: pytest.LogCaptureFixture) -> None:
    served = serve("""
        class TritonPythonModel:
            def execute(self, requests):
                pb_utils.Logger.log_verbose("quiet")
                pb_utils.Logger.log_info("plain")
    """)
    served.error()
    assert [record.levelname for record in caplog.records if record.name == "moorage.model"] == ["DEBUG", "INFO"]


def test_an_environment_of_its_own_is_warned_of(serve: Callable[..., Any], caplog: pytest.LogCaptureFixture) -> None:
    config = ModelConfig(name="m", parameters={"EXECUTION_ENV_PATH": Parameter(string_value="/envs/mine.tar.gz")})
    serve("class TritonPythonModel:\n    def execute(self, requests): return []\n", config=config)
    assert "EXECUTION_ENV_PATH (/envs/mine.tar.gz) is not supported" in caplog.text
