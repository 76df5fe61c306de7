"""A server inside your own program: models of a repository are called as functions of numpy arrays, with or without protocols.

`Server` is for ordinary code. It brings its own thread for what must go on in the background, and may be called from any
thread, also from one in which an event loop runs (a notebook). `AsyncServer` has the same methods for programs that are written
with asyncio, and lives in the event loop that starts it.

    with moorage.Server(model_repository="models") as server:
        sums = server.infer("add_sub", {"INPUT0": a, "INPUT1": b})["OUTPUT0"]

Both raise the errors of `moorage.errors`.
"""

from moorage._admin import IndexEntry, ModelMetadata, ModelStatistics, ServerMetadata, TensorMetadata
from moorage._app.options import ServerOptions
from moorage.server.aio import AsyncServer
from moorage.server.blocking import Server
from moorage.server.requests import RequestOptions
from moorage.server.results import InferResult
from moorage.server.streams import AsyncStream, Stream
from moorage.types import RequestedOutput

__all__ = [
    "AsyncServer",
    "AsyncStream",
    "IndexEntry",
    "InferResult",
    "ModelMetadata",
    "ModelStatistics",
    "RequestOptions",
    "RequestedOutput",
    "Server",
    "ServerMetadata",
    "ServerOptions",
    "Stream",
    "TensorMetadata",
]
