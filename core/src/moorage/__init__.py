"""moorage: a model server that serves Triton model repositories from Python."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from moorage.server import AsyncServer, InferResult, RequestedOutput, Server, ServerOptions

__all__ = ["AsyncServer", "InferResult", "RequestedOutput", "Server", "ServerOptions", "__version__"]

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """The names of `moorage.server`, loaded with the first of them that is asked for: `import moorage` stays light."""
    if name not in __all__:
        raise AttributeError(f"module 'moorage' has no attribute '{name}'")
    from moorage import server  # noqa: PLC0415

    return getattr(server, name)
