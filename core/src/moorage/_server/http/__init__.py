"""The HTTP/REST protocol: KServe v2 with Triton's extensions, by litestar on uvicorn."""

from moorage._server.http.app import build_app
from moorage._server.http.options import HttpOptions, Restriction, parse_restricted
from moorage._server.http.server import HttpServer

__all__ = ["HttpOptions", "HttpServer", "Restriction", "build_app", "parse_restricted"]
