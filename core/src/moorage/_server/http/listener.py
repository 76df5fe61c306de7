"""Sockets to listen on."""

from __future__ import annotations

import errno
import socket

from moorage.errors import Unavailable


def listen(address: str, port: int, *, reuse_port: bool = False) -> socket.socket:
    """A bound TCP socket. Raises Unavailable that names address and port if they cannot be had."""
    if reuse_port and not hasattr(socket, "SO_REUSEPORT"):
        raise Unavailable("--reuse-http-port: this operating system gives a port to one server only")
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[
            0
        ]
        sock = socket.socket(family, kind, protocol)
    except OSError as error:
        raise _refused(address, port, error) from error
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if reuse_port:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        sock.bind(place)
    except OSError as error:
        sock.close()
        raise _refused(address, port, error) from error
    sock.setblocking(False)
    return sock


def _refused(address: str, port: int, error: OSError) -> Unavailable:
    advice = "; end what listens there, or choose another port" if error.errno == errno.EADDRINUSE else ""
    return Unavailable(f"cannot listen on {address}:{port}: {error.strerror or error}{advice}")
