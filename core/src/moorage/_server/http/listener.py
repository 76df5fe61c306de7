"""Sockets to listen on."""

from __future__ import annotations

import socket

from moorage.errors import Unavailable


def listen(address: str, port: int, *, reuse_port: bool = False) -> socket.socket:
    """A bound TCP socket. Raises Unavailable that names address and port if they cannot be had."""
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[
            0
        ]
        sock = socket.socket(family, kind, protocol)
    except OSError as error:
        raise Unavailable(f"cannot listen on {address}:{port}: {error}") from error
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if reuse_port:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        sock.bind(place)
    except OSError as error:
        sock.close()
        raise Unavailable(f"cannot listen on {address}:{port}: {error}") from error
    sock.setblocking(False)
    return sock
