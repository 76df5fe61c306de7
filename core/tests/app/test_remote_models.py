"""Servers of a remote repository: what they ask of the store, and what they leave on this machine."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from attrs import define, evolve, field
from click.testing import CliRunner, Result

from moorage._app import wiring
from moorage._cli import main
from moorage.backend import VersionFiles
from moorage.config.schema import ModelConfig
from moorage.errors import Internal, InvalidArgument, MoorageError
from moorage.hookspecs import hookimpl
from moorage.server import Server, ServerOptions
from moorage.testing import RemoteStore

if TYPE_CHECKING:
    from core.tests.app.conftest import Stage

PATIENCE = 20.0
TENSORS = """
    backend: "trial"
    input [{ name: "X" data_type: TYPE_FP32 dims: [-1] }]
    output [{ name: "Y" data_type: TYPE_FP32 dims: [-1] %s }]
"""
CONFIG = TENSORS % ""
Serve = Callable[..., Server]


@define(eq=False)
class Traffic:
    """What a store is asked for, and a way to wait for it."""

    paths: list[tuple[str, str]] = field(factory=list)
    came: threading.Condition = field(factory=threading.Condition)

    def __call__(self, kind: str, path: str) -> None:
        with self.came:
            self.paths.append((kind, path))
            self.came.notify_all()

    def wait(self, kind: str, count: int) -> None:
        """Until there have been so many requests of this kind."""
        with self.came:
            assert self.came.wait_for(lambda: len(self.of(kind)) >= count, PATIENCE)

    def of(self, kind: str) -> list[str]:
        return [path for asked, path in self.paths if asked == kind]


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files, empty."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


@pytest.fixture
def store(tmp_path: Path, temporary: Path, stage: Stage, monkeypatch: pytest.MonkeyPatch) -> RemoteStore:
    """A store with one model."""
    made = RemoteStore(tmp_path / "remote")
    made.repository.add("m", {"1/model.trial": "double"}, config=CONFIG)
    monkeypatch.setattr(wiring, "BUILT_IN", (*wiring.BUILT_IN, ("remote store", made.plugin)))
    return made


@pytest.fixture
def traffic(store: RemoteStore) -> Traffic:
    store.meddle = traffic = Traffic()
    return traffic


@pytest.fixture
def serve(store: RemoteStore) -> Iterator[Serve]:
    servers: list[Server] = []

    def start(**options: Any) -> Server:
        chosen: dict[str, Any] = {"model_repository": store.url, "repository_settle_secs": 0, **options}
        servers.append(Server(**chosen).start())
        return servers[-1]

    yield start
    for server in servers:
        server.close()


def ask(server: Server, name: str = "m", value: float = 3) -> float:
    return float(server.infer(name, {"X": np.array([value], np.float32)})["Y"][0])


def copied(temporary: Path) -> list[str]:
    """The files of models that are on this machine."""
    return sorted("/".join(path.relative_to(temporary).parts[2:]) for path in temporary.glob("*/*/**/*") if path.is_file())


class TestModels:
    def test_one_is_served_from_a_copy_that_goes_with_it(self, serve: Serve, temporary: Path, store: RemoteStore) -> None:
        server = serve(model_control_mode="explicit", load_model="*")
        assert ask(server) == 6
        assert copied(temporary) == ["m/1/model.trial", "m/config.pbtxt"]
        server.unload("m")
        assert copied(temporary) == []
        assert store.counts == {"list": 1, "read": 1, "get": 2}
        server.load("m")
        server.close()
        assert list(temporary.iterdir()) == []
        assert store.closed == 1

    def test_only_the_version_that_is_loaded_is_brought(self, serve: Serve, store: RemoteStore, traffic: Traffic) -> None:
        store.put("m/2/model.trial", "triple")
        store.put("m/2/large", b"x" * 10_000)
        store.put("m/1/large", b"x" * 10_000)
        assert ask(serve()) == 9
        assert sorted(traffic.of("get")) == ["m/2/large", "m/2/model.trial", "m/config.pbtxt"]

    def test_labels_and_warm_up_files_come_along(self, serve: Serve, store: RemoteStore, stage: Stage) -> None:
        warm = 'model_warmup [{ name: "w" batch_size: 1 inputs { key: "X" value { data_type: TYPE_FP32 dims: [1] %s } } }]'
        config = TENSORS % 'label_filename: "labels.txt"' + warm % 'input_data_file: "seven"'
        store.repository.add("m", {"labels.txt": "cat\ndog\n", "warmup/seven": np.float32(7).tobytes()}, config=config)
        server = serve()
        assert [float(job.request.inputs["X"].array[0]) for job in stage.jobs] == [7]
        assert server._running()._parts.serving.get("m").labels == {"Y": ["cat", "dog"]}

    def test_a_load_that_fails_leaves_nothing(self, serve: Serve, store: RemoteStore, temporary: Path) -> None:
        store.put("bad/1/model.trial", "broken")
        store.put("bad/config.pbtxt", CONFIG)
        server = serve(exit_on_error=False)
        assert "cannot be read" in next(line.reason for line in server.index() if line.name == "bad")
        assert copied(temporary) == ["m/1/model.trial", "m/config.pbtxt"]

    def test_a_start_that_fails_leaves_nothing(self, serve: Serve, store: RemoteStore, temporary: Path) -> None:
        store.put("m/1/model.trial", "broken")
        with pytest.raises(Internal, match="cannot be read"):
            serve()
        assert list(temporary.iterdir()) == []

    def test_a_store_that_fails_is_named_with_the_file(self, serve: Serve, store: RemoteStore) -> None:
        server = serve(model_control_mode="explicit")

        def fail(kind: str, path: str) -> None:
            if path.endswith("model.trial"):
                raise TimeoutError("no answer")

        store.meddle = fail
        with pytest.raises(MoorageError, match=r"^model 'm' version 1 .* fake://bucket, file m/1/model.trial: .*no answer"):
            server.load("m")

    def test_a_changed_file_is_loaded_anew(self, serve: Serve, store: RemoteStore, temporary: Path) -> None:
        server = serve(model_control_mode="explicit", load_model="m")
        store.put("m/1/model.trial", "triple")
        server.load("m")
        assert ask(server) == 9
        store.put("m/2/model.trial", "echo")
        server.load("m")
        assert ask(server) == 3
        server.unload("m")
        assert copied(temporary) == []

    def test_instances_that_are_added_share_the_copy(
        self, serve: Serve, store: RemoteStore, temporary: Path, stage: Stage, traffic: Traffic
    ) -> None:
        warm = """model_warmup [{ name: "w" batch_size: 1 inputs { key: "X" value {
            data_type: TYPE_FP32 dims: [1] input_data_file: "seven" } } }]"""

        def config(count: int) -> str:
            return f"{CONFIG}{warm} instance_group {{ count: {count} kind: KIND_CPU }}"

        store.repository.add("m", {"warmup/seven": np.float32(7).tobytes()}, config=config(1))
        server = serve(model_control_mode="explicit", load_model="m")
        brought = len(traffic.of("get"))
        for count in (3, 2):
            store.put("m/config.pbtxt", config(count))
            server.load("m")
            assert server.config("m").instance_group[0].count == count
        assert len(stage.jobs) == 3
        assert ask(server) == 6
        assert len(traffic.of("get")) == brought
        assert copied(temporary) == ["m/1/model.trial", "m/config.pbtxt", "m/warmup/seven"]
        server.unload("m")
        assert copied(temporary) == []

    def test_an_ensemble(self, serve: Serve, store: RemoteStore, temporary: Path) -> None:
        step = (
            'step [{ model_name: "m" model_version: -1 input_map { key: "X" value: "X" } output_map { key: "Y" value: "Y" } }]'
        )
        config = CONFIG.replace('backend: "trial"', 'platform: "ensemble"') + f"ensemble_scheduling {{ {step} }}"
        store.repository.add("all", {"1/placeholder": ""}, config=config)
        assert ask(serve(), "all") == 6
        assert copied(temporary) == ["m/1/model.trial", "m/config.pbtxt"]

    def test_plugins_complete_configurations_from_the_copy(
        self, serve: Serve, store: RemoteStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        class Completer:
            @hookimpl
            def complete_config(self, config: ModelConfig, files: VersionFiles) -> ModelConfig | None:
                assert files.path is not None
                size = int((files.path / "size.txt").read_text())
                return evolve(config, input=(evolve(config.input[0], dims=(size,)),))

        monkeypatch.setattr(wiring, "BUILT_IN", (*wiring.BUILT_IN, ("completer", Completer())))
        config = CONFIG.replace('name: "X" data_type: TYPE_FP32 dims: [-1]', 'name: "X" data_type: TYPE_FP32')
        store.repository.add("m", {"1/size.txt": "1"}, config=config)
        server = serve(model_control_mode="explicit", load_model="m")
        store.put("m/config.pbtxt", f"{config} instance_group {{ count: 2 kind: KIND_CPU }}")
        server.load("m")
        assert server.config("m").input[0].dims == (1,)
        assert server.config("m").instance_group[0].count == 2

    def test_a_configuration_of_the_request(self, serve: Serve) -> None:
        server = serve(model_control_mode="explicit")
        tensor = {"data_type": "TYPE_FP32", "dims": [1]}
        config = {"backend": "trial", "input": [{"name": "X", **tensor}], "output": [{"name": "Y", **tensor}]}
        server.load("m", config)
        assert server.config("m").input[0].dims == (1,)
        assert ask(server) == 6

    def test_files_of_the_request_are_kept_beside_the_copies(self, serve: Serve, temporary: Path, store: RemoteStore) -> None:
        server = serve(model_control_mode="explicit")
        tensor = {"data_type": "TYPE_FP32", "dims": [-1]}
        config = {"backend": "trial", "input": [{"name": "X", **tensor}], "output": [{"name": "Y", **tensor}]}
        server.load("m", config, {"1/model.trial": b"triple"})
        assert ask(server) == 9
        assert copied(temporary) == ["m/1/model.trial"]
        assert store.counts["get"] == 0
        server.load("m")
        assert ask(server) == 6
        server.close()
        assert list(temporary.iterdir()) == []

    def test_two_servers_in_one_process(self, serve: Serve, temporary: Path) -> None:
        one, two = serve(), serve()
        one.close()
        assert copied(temporary) == ["m/1/model.trial", "m/config.pbtxt"]
        assert ask(two) == 6
        two.close()
        assert list(temporary.iterdir()) == []

    def test_the_end_of_a_server_waits_for_no_download(self, store: RemoteStore, temporary: Path) -> None:
        asked, go = threading.Event(), threading.Event()

        def wait(kind: str, path: str) -> None:
            if kind == "get":
                asked.set()
                assert go.wait(PATIENCE)

        store.meddle = wait
        server = Server(model_repository=store.url, model_control_mode="explicit").start()

        def load() -> None:
            with pytest.raises(MoorageError):
                server.load("m")

        loading = threading.Thread(target=load)
        loading.start()
        assert asked.wait(PATIENCE)
        threading.Timer(0.05, go.set).start()
        server.close()
        loading.join(PATIENCE)
        assert list(temporary.iterdir()) == []


class TestPolling:
    def test_a_download_that_has_failed_is_tried_again(self, serve: Serve, store: RemoteStore) -> None:
        failures = [ConnectionError("the line is dead")] * 2
        looked = threading.Event()

        def fail(kind: str, path: str) -> None:
            if kind == "get" and failures:
                raise failures.pop()
            if kind == "get":
                looked.set()

        store.meddle = fail
        server = serve(model_control_mode="poll", repository_poll_secs=0.05, exit_on_error=False)
        assert not server.ready("m")
        assert looked.wait(PATIENCE)
        end = time.monotonic() + PATIENCE
        while not server.ready("m") and time.monotonic() < end:
            time.sleep(0.01)
        assert ask(server) == 6

    def test_while_nothing_changes_each_poll_is_one_listing(self, serve: Serve, store: RemoteStore, traffic: Traffic) -> None:
        store.page = 3
        for number in range(10):
            store.repository.add(f"m{number}", {"1/model.trial": "double"}, config=CONFIG)
        server = serve(model_control_mode="poll", repository_poll_secs=0.01)
        store.counts.clear()
        before = len(traffic.of("list"))
        traffic.wait("list", before + 20)
        server.close()
        looks = len(traffic.of("list")) - before
        assert store.counts == {"list": 8 * looks}, "22 keys are 8 pages of 3"

    def test_a_change_costs_what_has_changed(self, serve: Serve, store: RemoteStore, traffic: Traffic) -> None:
        store.repository.add("other", {"1/model.trial": "double"}, config=CONFIG)
        server = serve(model_control_mode="poll", repository_poll_secs=0.01)
        before = len(traffic.paths)
        store.put("m/2/model.trial", "triple")
        traffic.wait("get", 6)
        traffic.wait("list", len(traffic.of("list")) + 2)
        server.close()
        asked = sorted(one for one in traffic.paths[before:] if one[0] != "list")  # files come in any order
        assert asked == [("get", "m/2/model.trial"), ("get", "m/config.pbtxt")], "the configuration is part of the copy only"

    def test_a_changed_configuration_is_read(self, serve: Serve, store: RemoteStore, traffic: Traffic) -> None:
        server = serve(model_control_mode="poll", repository_poll_secs=0.01)
        store.put("m/config.pbtxt", f"{CONFIG} instance_group {{ count: 2 kind: KIND_CPU }}")
        traffic.wait("read", 2)
        traffic.wait("list", len(traffic.of("list")) + 2)
        server.close()
        assert traffic.of("read") == ["m/config.pbtxt"] * 2


class TestCache:
    def test_a_restart_reads_and_downloads_nothing_but_what_has_changed(
        self, serve: Serve, store: RemoteStore, traffic: Traffic, tmp_path: Path, temporary: Path
    ) -> None:
        store.repository.add("other", {"1/model.trial": "triple", "labels.txt": "a"}, config=CONFIG)
        for expected in (["m/1/model.trial", "m/config.pbtxt", "other/1/model.trial", "other/config.pbtxt"], [], []):
            traffic.paths.clear()
            server = serve(model_cache_dir=tmp_path / "cache")
            assert (ask(server), ask(server, "other")) == (6, 9)
            server.close()
            asked = sorted({path for kind, path in traffic.paths if kind != "list" and "labels" not in path})
            assert asked == expected
            assert list(temporary.iterdir()) == []
        store.put("m/1/model.trial", "echo")
        traffic.paths.clear()
        assert ask(serve(model_cache_dir=tmp_path / "cache")) == 3
        assert [one for one in traffic.paths if one[0] != "list"] == [("get", "m/1/model.trial")]

    def test_a_configuration_is_brought_once(self, serve: Serve, traffic: Traffic, tmp_path: Path) -> None:
        serve(model_cache_dir=tmp_path / "cache")
        assert (traffic.of("read"), traffic.of("get")) == (["m/config.pbtxt"], ["m/1/model.trial"])

    def test_a_model_that_does_not_fit_is_served(
        self, serve: Serve, store: RemoteStore, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        store.put("m/1/weights", b"x" * 5000)
        assert ask(serve(model_cache_dir=tmp_path / "cache", model_cache_size="1kB")) == 6
        assert "are not kept in the model cache, which may hold 1.0 kB" in caplog.text

    @pytest.mark.parametrize(
        "options, message",
        [
            ({"model_cache_dir": "FILE"}, r"^--model-cache-dir=.*: it cannot be used: Not a directory"),
            ({"model_cache_size": "10G"}, r"^--model-cache-size: '10G' is no size"),
        ],
    )
    def test_settings_that_cannot_be(self, store: RemoteStore, tmp_path: Path, options: dict[str, str], message: str) -> None:
        (tmp_path / "file").write_text("")
        chosen = {name: value.replace("FILE", str(tmp_path / "file")) for name, value in options.items()}
        with pytest.raises(InvalidArgument, match=message):
            Server(ServerOptions(model_repository=(store.url,), **chosen))  # type: ignore[arg-type]


class TestMountDirectory:
    def test_copies_lie_there_until_the_end(
        self, tmp_path: Path, stage: Stage, temporary: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store = RemoteStore(tmp_path / "remote", mount_variable="FAKE_MOUNT_DIRECTORY")
        store.repository.add("m", {"1/model.trial": "double"}, config=CONFIG)
        monkeypatch.setattr(wiring, "BUILT_IN", (*wiring.BUILT_IN, ("remote store", store.plugin)))
        mount = tmp_path / "mount"
        monkeypatch.setenv("FAKE_MOUNT_DIRECTORY", str(mount))
        with pytest.raises(InvalidArgument, match=r"^FAKE_MOUNT_DIRECTORY=.*/mount: there is no such folder"):
            Server(model_repository=store.url)
        mount.mkdir()
        with Server(model_repository=store.url) as server:
            assert ask(server) == 6
            assert copied(mount) == ["m/1/model.trial", "m/config.pbtxt"]
            assert copied(temporary) == []
        assert list(mount.iterdir()) == []

    def test_it_does_not_matter_for_other_stores(self, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OTHER_MOUNT_DIRECTORY", "/nowhere")
        assert ask(serve()) == 6


def moorage(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


class TestCommands:
    def test_check_downloads_to_load_and_says_so(self, store: RemoteStore, temporary: Path) -> None:
        store.put("bad/1/model.trial", "broken")
        store.put("bad/config.pbtxt", CONFIG)
        done = moorage("check", store.url, "--json")
        assert [finding["model"] for finding in json.loads(done.stdout)] == ["bad"]
        assert "Models of fake://bucket are downloaded to be loaded; --no-load does without." in done.stderr
        assert store.counts["get"] == 4
        assert list(temporary.iterdir()) == []

    def test_check_without_loading_reads_configurations_only(self, store: RemoteStore, temporary: Path) -> None:
        done = moorage("check", store.url, "--no-load")
        assert (done.stdout, done.stderr) == ("No faults.\n", "")
        assert store.counts == {"list": 1, "read": 1}

    def test_plan_reads_configurations_only(self, store: RemoteStore) -> None:
        assert moorage("plan", store.url, "--json").exit_code == 0
        assert store.counts == {"list": 1, "read": 1}


CHURN = """
import sys, tempfile
from collections.abc import Sequence
from pathlib import Path
from moorage._app import wiring
from moorage.backend import Backend, BatchInstance, LoadedModel
from moorage.hookspecs import hookimpl
from moorage.server import Server
from moorage.testing import RemoteStore

class Copy(BatchInstance):
    def run(self, inputs, outputs):
        return {"Y": inputs["X"]}

class Copier(LoadedModel):
    def instance(self, placement):
        return Copy()

class Copying(Backend):
    name = "trial"
    default_model_filename = "model.trial"
    def load(self, context):
        return Copier()

class Plugin:
    @hookimpl
    def backends(self):
        return (Copying,)

folder = Path(sys.argv[1])
tempfile.tempdir = str(folder / "temporary")
store = RemoteStore(folder / "remote")
wiring.BUILT_IN = (*wiring.BUILT_IN, ("remote store", store.plugin), ("copying", Plugin()))
cache = {"model_cache_dir": folder / "cache", "model_cache_size": "25kB"}
server = Server(model_repository=store.url, model_control_mode="explicit", **cache).start()
for version in range(1, 21):
    store.repository.add("m", {f"{version}/model.trial": "echo", f"{version}/weights": bytes([version]) * 10_000})
    server.load("m")
    if version % 3 == 0:
        server.unload("m")
print("loaded", flush=True)
sys.stdin.read()
"""


@pytest.mark.heavy
def test_of_a_server_that_was_killed_the_next_one_leaves_nothing(
    serve: Serve, store: RemoteStore, traffic: Traffic, tmp_path: Path, temporary: Path
) -> None:
    def size(folder: Path) -> int:
        return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())

    store.repository.add("m", {"labels.txt": "a"}, config=CONFIG)
    command = [sys.executable, "-c", CHURN, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as killed:
        assert killed.stdout is not None
        assert killed.stdout.readline() == "loaded\n"
        killed.kill()
    (left,) = [path for path in temporary.iterdir() if path.is_dir()]
    assert size(temporary) > 10_000
    options = {"model_cache_dir": tmp_path / "cache", "model_cache_size": "25kB"}
    server = serve(model_control_mode="explicit", load_model="m", **options)
    assert ask(server) == 3
    assert not left.exists()
    assert 10_000 < size(temporary) < 11_000
    assert {kind for kind, _ in traffic.paths} == {"list"}
    server.close()
    assert list(temporary.iterdir()) == []
    assert list((tmp_path / "cache" / "servers").iterdir()) == []
    assert 20_000 < size(tmp_path / "cache") < 27_000
