"""The servers that moorage is measured against, and moorage itself: how each is installed and started."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path

from moorage_bench.install import MissingPeerError, venv
from moorage_bench.servers import Ports, ServerSpec

TRITON_PACKAGES = ("nvidia-pytriton==0.7.0", "numpy")
"""The wheel holds a real Triton 2.51 for the CPU, with its Python backend."""
MLSERVER_PACKAGES = ("mlserver==1.7.1", "onnxruntime")

_FIND_TRITON = """
import importlib.util, json, pathlib, sys, sysconfig
root = pathlib.Path(importlib.util.find_spec("pytriton").origin).parent / "tritonserver"
print(json.dumps([str(root), "%d.%d" % sys.version_info[:2], sysconfig.get_config_var("LIBDIR")]))
"""


def moorage(repository: Path) -> ServerSpec:
    """moorage as installed beside this Python."""
    if importlib.util.find_spec("moorage") is None:
        raise MissingPeerError("moorage is not installed in the environment that runs the benchmarks")
    ports = Ports.free()
    program = Path(sys.executable).parent / "moorage"
    if not program.exists():
        raise MissingPeerError(f"no command 'moorage' beside {sys.executable}")
    argv = (str(program), "serve", *_common_flags(repository, ports))
    return ServerSpec("moorage", argv, ports)


def triton(repository: Path) -> ServerSpec:
    """The real Triton server, CPU and Python backend only."""
    python = venv("triton", TRITON_PACKAGES)
    found = subprocess.run([str(python), "-c", _FIND_TRITON], capture_output=True, text=True, check=True)
    location, minor, libraries = json.loads(found.stdout)
    root = Path(location)
    stub = root / "backends/python/triton_python_backend_stub"
    if not stub.exists():
        shutil.copy(root / "python_backend_stubs" / minor / stub.name, stub)
    for program in (stub, root / "bin/tritonserver"):
        program.chmod(0o755)
    ports = Ports.free()
    folders = (f"--backend-directory={root / 'backends'}", f"--cache-directory={root / 'caches'}")
    addresses = tuple(f"--{door}-address=127.0.0.1" for door in ("http", "grpc", "metrics"))
    argv = (str(root / "bin/tritonserver"), *_common_flags(repository, ports), *folders, *addresses)
    return ServerSpec("triton", argv, ports, {"LD_LIBRARY_PATH": libraries, "PATH": f"{python.parent}:/usr/bin:/bin"})


def mlserver(repository: Path) -> ServerSpec:
    """MLServer with the runtime of `mlserver_runtime.py`. Its folder holds a settings file, written here."""
    python = venv("mlserver", MLSERVER_PACKAGES)
    ports = Ports.free()
    settings = {
        "host": "127.0.0.1",
        "http_port": ports.http,
        "grpc_port": ports.grpc,
        "metrics_port": ports.metrics,
        "parallel_workers": 0,
        "debug": False,
    }
    (repository / "settings.json").write_text(json.dumps(settings))
    argv = (str(python.parent / "mlserver"), "start", str(repository))
    path = f"{python.parent}:/usr/bin:/bin"
    return ServerSpec("mlserver", argv, ports, {"PATH": path, "PYTHONPATH": str(repository)})


def _common_flags(repository: Path, ports: Ports) -> tuple[str, ...]:
    return (
        f"--model-repository={repository}",
        f"--http-port={ports.http}",
        f"--grpc-port={ports.grpc}",
        f"--metrics-port={ports.metrics}",
    )
