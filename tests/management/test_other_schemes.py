"""Models that lie in memory, in archives, behind a web server and in a cloud are served as those in folders are."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pytest
from fsspec.implementations.memory import MemoryFileSystem

import moorage
from emulators.gcs import Bucket, bucket, fake_gcs, gcs, proxy, reached
from emulators.proxy import ALWAYS, Fault, Proxy
from inputs.models import VALUE, io
from moorage.errors import MoorageError

__all__ = ["bucket", "fake_gcs", "gcs", "proxy", "reached"]
CONFIG = f'backend: "python"\n{io()}'.encode()


def ask(server: moorage.Server, name: str = "m") -> float:
    return float(server.infer(name, {"X": np.array([0.0], np.float32)})["Y"][0])


def source(value: float) -> bytes:
    return VALUE.format(value=value).encode()


@pytest.fixture
def memory() -> Iterator[MemoryFileSystem]:
    yield MemoryFileSystem()
    MemoryFileSystem.store.clear()
    MemoryFileSystem.pseudo_dirs[:] = [""]


def test_a_model_in_memory_is_reloaded(memory: MemoryFileSystem) -> None:
    memory.pipe_file("/models/m/config.pbtxt", CONFIG)
    memory.pipe_file("/models/m/1/model.py", source(1.0))
    with moorage.Server(model_repository="memory://models", model_control_mode="explicit", load_model="*") as server:
        assert ask(server) == 1.0
        memory.pipe_file("/models/m/1/model.py", source(2.0))
        server.load("m")
        assert ask(server) == 2.0
        memory.rm_file("/models/m/1/model.py")
        with pytest.raises(MoorageError):
            server.load("m")
        assert ask(server) == 2.0


@pytest.mark.heavy
def test_a_model_in_an_archive_in_a_cloud(bucket: Bucket, reached: pytest.MonkeyPatch, tmp_path: Path) -> None:
    packed = tmp_path / "models.zip"
    with zipfile.ZipFile(packed, "w") as made:
        made.writestr("release/m/config.pbtxt", CONFIG)
        made.writestr("release/m/1/model.py", source(3.0))
    bucket.put("archives/models.zip", packed.read_bytes())
    with moorage.Server(model_repository=f"zip://release::{bucket.url}/archives/models.zip") as server:
        assert ask(server) == 3.0


@pytest.mark.heavy
def test_a_cloud_is_followed_and_its_failures_change_nothing(bucket: Bucket, proxy: Proxy, reached: pytest.MonkeyPatch) -> None:
    bucket.fill({"models/m/config.pbtxt": CONFIG, "models/m/1/model.py": source(1.0), "models/": b""})
    options: dict[str, Any] = {"repository_poll_secs": 0.2, "repository_settle_secs": 0.0}
    waiting = Event()

    def wait_for(value: float) -> None:
        for _ in range(300):
            if ask(server) == value:
                return
            waiting.wait(0.05)
        pytest.fail(f"the model does not answer {value}")

    with moorage.Server(model_repository=f"{bucket.url}/models", model_control_mode="poll", **options) as server:
        assert ask(server) == 1.0
        bucket.put("models/m/2/model.py", source(2.0))
        wait_for(2.0)
        proxy.reset()
        proxy.faults.append(Fault(status=404, times=ALWAYS))
        for _ in range(100):
            if len(proxy.seen) >= 3:
                break
            waiting.wait(0.05)
        assert len(proxy.seen) >= 3
        assert ask(server) == 2.0
        proxy.reset()
        bucket.delete("models/m/2/model.py")
        wait_for(1.0)
