"""Loads and unloads models of a running server, and looks at its memory."""

from __future__ import annotations

import http.client
from contextlib import closing
from pathlib import Path

from attrs import evolve

from moorage_bench.load import LoadError
from moorage_bench.servers import Running, ServerSpec

_LIMIT_S = 120


def explicit(spec: ServerSpec, *models: str) -> ServerSpec:
    """The same server in mode explicit, with these models loaded at its start."""
    flags = ("--model-control-mode=explicit", *(f"--load-model={model}" for model in models))
    return evolve(spec, argv=(*spec.argv, *flags))


def ask(server: Running, model: str, action: str) -> None:
    """`load` or `unload` a model; returns when the server answers. Raises LoadError if it refuses."""
    path = f"/v2/repository/models/{model}/{action}"
    with closing(http.client.HTTPConnection("127.0.0.1", server.ports.http, timeout=_LIMIT_S)) as connection:
        connection.request("POST", path, b"")
        response = connection.getresponse()
        body = response.read()
    if response.status != http.HTTPStatus.OK:
        raise LoadError(f"{server.name}: {path} answers {response.status}: {body[:400]!r}")


def resident_mib(server: Running) -> float:
    """Resident memory of the server's process, in MiB. Raises LoadError on systems that do not tell."""
    try:
        lines = Path(f"/proc/{server.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) / 1024
    except (OSError, StopIteration) as error:
        raise LoadError(f"the memory of process {server.pid} cannot be read") from error
