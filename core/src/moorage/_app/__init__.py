"""The composition root: puts the rooms together and runs a server from its start to its end."""

from moorage._app.application import Application
from moorage._app.options import ServerOptions
from moorage._app.wiring import load_plugins

__all__ = ["Application", "ServerOptions", "load_plugins"]
