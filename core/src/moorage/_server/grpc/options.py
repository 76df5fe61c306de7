"""How the gRPC server is set up. The flags that set these values are spelt as Triton's."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import grpc
from attrs import field, frozen

from moorage._server.grpc.access import Restriction
from moorage.errors import InvalidArgument

COMPRESSION_LEVELS: Final = {"none": 0, "low": 1, "medium": 2, "high": 3}
"""`--grpc-infer-response-compression-level` -> gRPC's number for it."""

ChannelOptions = list[tuple[str, int | str]]


@frozen
class KeepAlive:
    """`--grpc-keepalive-*`, `--grpc-http2-*` and `--grpc-max-connection-age*`. Times in milliseconds, 0 for no limit of age."""

    time_ms: int = 7_200_000
    timeout_ms: int = 20_000
    permit_without_calls: bool = False
    max_pings_without_data: int = 2
    min_recv_ping_interval_without_data_ms: int = 300_000
    max_ping_strikes: int = 2
    max_connection_age_ms: int = 0
    max_connection_age_grace_ms: int = 0


@frozen
class Tls:
    """`--grpc-server-cert`, `--grpc-server-key`, `--grpc-root-cert` (PEM files) and `--grpc-use-ssl-mutual`."""

    certificate: Path
    key: Path
    root: Path | None = None
    mutual: bool = False
    """Whether clients must show a certificate signed by `root`."""


@frozen
class GrpcOptions:
    """Everything about the gRPC port. `port` 0 takes a free one."""

    address: str = "127.0.0.1"
    port: int = 8001
    reuse_port: bool = False
    tls: Tls | None = None
    keepalive: KeepAlive = field(factory=KeepAlive)
    compression: str = "none"
    header_forward_pattern: str = ""
    """A regular expression; metadata whose key it is found in become parameters of inference requests."""
    restrictions: tuple[Restriction, ...] = ()
    portable: bool = False
    """Use only grpcio's public API: slower, a thread for each call in flight."""


def listening_address(options: GrpcOptions) -> str:
    """Address and port as gRPC wants them, IPv6 in brackets."""
    host = f"[{options.address}]" if ":" in options.address and "[" not in options.address else options.address
    return f"{host}:{options.port}"


def channel_options(options: GrpcOptions) -> ChannelOptions:
    """The options as gRPC's channel arguments. Raises InvalidArgument for an unknown compression level."""
    keepalive = options.keepalive
    level = COMPRESSION_LEVELS.get(options.compression)
    if level is None:
        raise InvalidArgument(f"gRPC compression level '{options.compression}': take one of {', '.join(COMPRESSION_LEVELS)}")
    arguments: ChannelOptions = [
        ("grpc.max_receive_message_length", -1),
        ("grpc.max_send_message_length", -1),
        ("grpc.so_reuseport", int(options.reuse_port)),
        ("grpc.keepalive_time_ms", keepalive.time_ms),
        ("grpc.keepalive_timeout_ms", keepalive.timeout_ms),
        ("grpc.keepalive_permit_without_calls", int(keepalive.permit_without_calls)),
        ("grpc.http2.max_pings_without_data", keepalive.max_pings_without_data),
        ("grpc.http2.min_ping_interval_without_data_ms", keepalive.min_recv_ping_interval_without_data_ms),
        ("grpc.http2.max_ping_strikes", keepalive.max_ping_strikes),
    ]
    if keepalive.max_connection_age_ms:
        arguments.append(("grpc.max_connection_age_ms", keepalive.max_connection_age_ms))
    if keepalive.max_connection_age_grace_ms:
        arguments.append(("grpc.max_connection_age_grace_ms", keepalive.max_connection_age_grace_ms))
    if level:
        arguments.append(("grpc.default_compression_level", level))
    return arguments


def credentials(tls: Tls) -> grpc.ServerCredentials:
    """The server's credentials. Raises InvalidArgument if a file cannot be read or a root certificate is missing."""
    if tls.mutual and tls.root is None:
        raise InvalidArgument("mutual TLS for gRPC needs the certificate that clients' are signed by: set --grpc-root-cert")
    root = None if tls.root is None else _read(tls.root)
    return grpc.ssl_server_credentials([(_read(tls.key), _read(tls.certificate))], root, tls.mutual)


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise InvalidArgument(f"the gRPC server cannot read '{file}': {error.strerror}") from error
