"""From a version's files to a servable, with a backend of the test's own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from attrs import evolve

from moorage._execution import Loader, LoadSettings, Servable
from moorage._plugins import Registry
from moorage._repository.spec import VersionSpec
from moorage.backend import (
    Backend,
    BatchInstance,
    Instance,
    LoadContext,
    LoadedModel,
    Placement,
    Signature,
    TensorSpec,
    VersionFiles,
)
from moorage.config import parse_text
from moorage.config.schema import ModelConfig
from moorage.control import ModelId
from moorage.errors import ConfigError, InvalidArgument, ModelError, MoorageError, PluginError, Unsupported
from moorage.storage import Entry, Progress, Storage, unseen
from moorage.types import DataType, InferRequest, InferResponse, Tensor

SIGNATURE = Signature(inputs=(TensorSpec("X", DataType.FP32, (-1, 3)),), outputs=(TensorSpec("Y", DataType.FP32, (-1, 3)),))


class NoStorage(Storage):
    schemes = ("none",)

    def list(self, url: str) -> tuple[Entry, ...]:
        return ()

    def read(self, url: str, path: str) -> bytes:
        raise NotImplementedError

    def download(self, url: str, entries: Sequence[Entry], target: Path, progress: Progress = unseen) -> None:
        raise NotImplementedError


class Twice(BatchInstance):
    def __init__(self, closed: list[str], name: str) -> None:
        self.closed, self.name = closed, name

    def run(self, inputs: Mapping[str, np.ndarray], outputs: Sequence[str]) -> Mapping[str, np.ndarray]:
        return {"Y": inputs["X"] * 2}

    def close(self) -> None:
        self.closed.append(self.name)


class TwiceModel(LoadedModel):
    closed: list[str]

    def __init__(self, context: LoadContext, make: Callable[[Placement], Instance | BatchInstance] | None) -> None:
        self.context, self.make, self.closed = context, make, []
        made.append(self)

    def signature(self) -> Signature | None:
        return SIGNATURE

    def instance(self, placement: Placement) -> Instance | BatchInstance:
        return self.make(placement) if self.make else Twice(self.closed, placement.name)

    def close(self) -> None:
        self.closed.append("model")


made: list[TwiceModel] = []


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    made.clear()
    yield
    made.clear()


def backend(make: Callable[[Placement], Instance | BatchInstance] | None = None) -> type[Backend]:
    class TwiceBackend(Backend):
        name = "twice"
        default_model_filename = "model.twice"

        def load(self, context: LoadContext) -> LoadedModel:
            if context.model_file.read_text() == "corrupt":
                raise ValueError("not a model")
            return TwiceModel(context, make)

    return TwiceBackend


def registry(
    make: Callable[[Placement], Instance | BatchInstance] | None = None,
    completer: Callable[[ModelConfig, VersionFiles], ModelConfig | None] | None = None,
) -> Registry:
    return Registry(backends={"twice": backend(make)}, completers=(("test", completer),) if completer else ())


def spec(folder: Path, text: str = "", content: str = "weights") -> VersionSpec:
    version = folder / "1"
    version.mkdir(exist_ok=True)
    (version / "model.twice").write_text(content)
    return VersionSpec(
        id=ModelId("doubler"),
        version=1,
        parsed=parse_text(f'name: "doubler" backend: "twice" {text}', file="config.pbtxt"),
        files=VersionFiles("doubler", frozenset({"model.twice"}), version, folder, 1),
        fingerprint="1",
        storage=NoStorage(),
        repository=str(folder.parent),
        folder=folder.name,
    )


class Waiting:
    def __init__(self) -> None:
        self.over = threading.Event()
        self.response: InferResponse | None = None

    def send(self, response: InferResponse, *, final: bool) -> None:
        self.response = response
        self.over.set()

    def fail(self, error: MoorageError) -> None:
        self.over.set()

    def complete(self) -> None:
        self.over.set()


def ask(servable: Servable, array: np.ndarray) -> InferResponse | None:
    sink = Waiting()
    servable.submit(InferRequest("doubler", {"X": Tensor("X", DataType.FP32, array)}), sink)
    assert sink.over.wait(5)
    return sink.response


def test_a_version_is_completed_served_and_closed(tmp_path: Path) -> None:
    servable = Loader(registry(), LoadSettings(default_max_batch_size=8))(spec(tmp_path, "instance_group { count: 2 }"))
    config = servable.config
    assert config.max_batch_size == 8 and config.input[0].dims == (3,) and config.output[0].data_type is DataType.FP32
    response = ask(servable, np.ones((2, 3), np.float32))
    assert response is not None and response.outputs[0].array.tolist() == [[2, 2, 2]] * 2
    assert servable.statistics().success.count == 1
    servable.close()
    assert sorted(made[0].closed[:2]) == ["doubler_0_0", "doubler_0_1"] and made[0].closed[2] == "model"


def test_a_backend_may_have_a_default_batch_size_of_its_own(tmp_path: Path) -> None:
    own = {"default-max-batch-size": "2"}
    for name, expected in (("twice", 2), ("other", 8)):
        settings = LoadSettings(default_max_batch_size=8, backend_config={name: own})
        servable = Loader(registry(), settings)(spec(tmp_path))
        assert servable.config.max_batch_size == expected
        servable.close()


def test_without_auto_completion_the_configuration_must_be_whole(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="doubler"):
        Loader(registry(), LoadSettings(auto_complete=False))(spec(tmp_path, 'input { name: "X" }'))


def test_what_the_file_contradicts_is_refused_and_the_model_closed(tmp_path: Path) -> None:
    text = 'max_batch_size: 4 input { name: "Z" data_type: TYPE_FP32 dims: 3 }'
    with pytest.raises(ConfigError, match=r"'Z'"):
        Loader(registry(), LoadSettings())(spec(tmp_path, text))
    assert made[0].closed == ["model"]


def test_a_plugin_may_fill_in_but_not_change(tmp_path: Path) -> None:
    def meddle(config: ModelConfig, files: VersionFiles) -> ModelConfig:
        return evolve(config, metric_tags={"a": "b"}, max_batch_size=config.max_batch_size + 1)

    loader = Loader(registry(completer=meddle), LoadSettings())
    servable = loader(spec(tmp_path, "max_batch_size: 4"))
    assert servable.config.max_batch_size == 5 and servable.config.metric_tags == {"a": "b"}
    servable.close()
    with pytest.raises(PluginError, match=r"doubler.*test.*metric_tags"):
        loader(spec(tmp_path, 'metric_tags { key: "x" value: "y" }'))


@pytest.mark.parametrize(
    ("text", "content", "error", "words"),
    [
        ("", "corrupt", ModelError, ["doubler", "not a model"]),
        ('default_model_filename: "other"', "weights", InvalidArgument, ["doubler", "other", "model.twice"]),
        ('output { name: "Y" label_filename: "absent.txt" }', "weights", ConfigError, ["doubler", "absent.txt"]),
        ("sequence_batching { }", "weights", Unsupported, ["doubler", "sequence_batching"]),
    ],
)
def test_failures_name_the_model_and_the_cause(
    tmp_path: Path, text: str, content: str, error: type[Exception], words: list[str]
) -> None:
    with pytest.raises(error) as caught:
        Loader(registry(), LoadSettings())(spec(tmp_path, text, content))
    for word in words:
        assert word in str(caught.value)


def test_an_unknown_backend_is_the_callers_mistake(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="twice"):
        Loader(Registry(), LoadSettings())(spec(tmp_path))


def test_one_instance_that_fails_takes_the_started_ones_with_it(tmp_path: Path) -> None:
    closed: list[str] = []

    def make(placement: Placement) -> Instance | BatchInstance:
        if placement.name.endswith("_1"):
            raise RuntimeError("no room")
        return Twice(closed, placement.name)

    with pytest.raises(ModelError, match=r"doubler.*doubler_0_1.*no room"):
        Loader(registry(make), LoadSettings())(spec(tmp_path, "instance_group { count: 2 }"))
    assert closed == ["doubler_0_0"] and made[0].closed == ["model"]


def test_warm_up_runs_before_the_model_serves_and_must_succeed(tmp_path: Path) -> None:
    (tmp_path / "warmup").mkdir()
    (tmp_path / "warmup" / "three").write_bytes(np.ones(3, np.float32).tobytes())
    (tmp_path / "warmup" / "short").write_bytes(b"1")
    data = '{ data_type: TYPE_FP32 dims: 3 input_data_file: "%s" }'
    text = f'model_warmup {{ name: "w" batch_size: 2 count: 3 inputs {{ key: "X" value {data} }} }}'
    loader = Loader(registry(), LoadSettings())
    servable = loader(spec(tmp_path, text % "three"))
    counts = servable.statistics()
    assert (counts.execution_count, counts.inference_count) == (3, 6)
    servable.close()
    with pytest.raises(ConfigError, match=r"short.*1 bytes"):
        loader(spec(tmp_path, text % "short"))
    with pytest.raises(ConfigError, match="leads out"):
        loader(spec(tmp_path, text % "../config.pbtxt"))


def test_settings_reach_the_backend_its_own_over_those_for_all(tmp_path: Path) -> None:
    settings = LoadSettings(backend_config={"": {"a": "all", "b": "all"}, "twice": {"b": "mine"}, "other": {"c": "x"}})
    Loader(registry(), settings)(spec(tmp_path)).close()
    assert made[0].context.backend_config == {"a": "all", "b": "mine"}
