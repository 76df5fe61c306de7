"""From options to protocols: apart from the other rooms, so that a server without protocols does not load their libraries."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from moorage._app.engine import Engine
from moorage._app.options import ServerOptions
from moorage._server.grpc import GrpcOptions, GrpcServer, KeepAlive, Tls, parse_restriction
from moorage._server.http import HttpOptions, HttpServer, build_app, parse_restricted
from moorage._server.metrics import MetricsOptions, metrics_app, metrics_registry, text_page
from moorage.errors import InvalidArgument

_NO_METRICS = ("histogram_latencies=false", "summary_latencies=false")
"""Settings that switch off what is not there."""


class Protocols:
    """The protocols that the options ask for. The options are checked when it is made."""

    def __init__(self, options: ServerOptions) -> None:
        """Raises InvalidArgument naming the flag."""
        self._options = options
        self._http = http_options(options)
        self._metrics = metrics_options(options)
        self._grpc = grpc_options(options)

    def servers(self, engine: Engine) -> list[HttpServer | GrpcServer]:
        """Servers of the engine, to be started in this order: HTTP last, so that who finds it ready finds gRPC, too."""
        made: list[HttpServer | GrpcServer] = [self.grpc(engine)] if self._options.allow_grpc else []
        if self._options.allow_http or self._options.allow_metrics:
            app = build_app(engine.inference, engine.admin, self._http) if self._options.allow_http else None
            made.append(HttpServer(app, self._http, metrics=metrics_app(engine.admin, self._metrics)))
        return made

    def addresses(self, servers: Sequence[HttpServer | GrpcServer]) -> dict[str, str]:
        """Where these servers, all started, can be reached, by protocol."""
        found: dict[str, str] = {}
        for server in servers:
            if isinstance(server, GrpcServer):
                found["grpc"] = f"{self._grpc.address}:{server.port}"
                continue
            if server.port is not None:
                found["http"] = f"http://{self._http.address}:{server.port}"
            if server.metrics_port is not None:
                found["metrics"] = f"http://{self._http.metrics_address or self._http.address}:{server.metrics_port}/metrics"
        return found

    def http(self, engine: Engine) -> HttpServer:
        """A server of HTTP alone."""
        return HttpServer(build_app(engine.inference, engine.admin, self._http), self._http)

    def grpc(self, engine: Engine) -> GrpcServer:
        """A server of gRPC."""
        return GrpcServer(engine.inference, engine.admin, self._grpc)

    def metrics(self, engine: Engine) -> HttpServer:
        """A server of the metrics alone."""
        return HttpServer(None, self._http, metrics=metrics_app(engine.admin, self._metrics))

    def metrics_page(self, engine: Engine) -> str:
        """What the server of the metrics would answer now."""
        return text_page(metrics_registry(engine.admin, self._metrics).collect()).decode()


def http_options(options: ServerOptions) -> HttpOptions:
    """Raises InvalidArgument naming the flag."""
    return HttpOptions(
        address=options.http_address,
        port=options.http_port,
        reuse_port=options.reuse_http_port,
        metrics_address=options.metrics_address,
        metrics_port=options.metrics_port if options.allow_metrics else None,
        header_forward_pattern=options.http_header_forward_pattern,
        restricted=parse_restricted(options.http_restricted_api),
        max_input_size=options.http_max_input_size,
        json_halves=options.http_json_halves,
    )


def metrics_options(options: ServerOptions) -> MetricsOptions:
    """Raises InvalidArgument for a setting that is none."""
    latencies = True
    for text in options.metrics_config:
        if text in _NO_METRICS:
            continue
        if text not in ("counter_latencies=true", "counter_latencies=false"):
            raise InvalidArgument(f"--metrics-config '{text}': write counter_latencies=true or counter_latencies=false")
        latencies = text.endswith("=true")
    return MetricsOptions(latencies=latencies, machine=options.allow_cpu_metrics)


def grpc_options(options: ServerOptions) -> GrpcOptions:
    """Raises InvalidArgument naming the flag."""
    return GrpcOptions(
        address=options.grpc_address,
        port=options.grpc_port,
        reuse_port=options.reuse_grpc_port,
        tls=_tls(options),
        keepalive=_keepalive(options),
        compression=options.grpc_infer_response_compression_level,
        header_forward_pattern=options.grpc_header_forward_pattern,
        restrictions=tuple(parse_restriction(text) for text in options.grpc_restricted_protocol),
    )


def _keepalive(options: ServerOptions) -> KeepAlive:
    return KeepAlive(
        time_ms=options.grpc_keepalive_time,
        timeout_ms=options.grpc_keepalive_timeout,
        permit_without_calls=options.grpc_keepalive_permit_without_calls,
        max_pings_without_data=options.grpc_http2_max_pings_without_data,
        min_recv_ping_interval_without_data_ms=options.grpc_http2_min_recv_ping_interval_without_data,
        max_ping_strikes=options.grpc_http2_max_ping_strikes,
        max_connection_age_ms=options.grpc_max_connection_age,
        max_connection_age_grace_ms=options.grpc_max_connection_age_grace,
    )


def _tls(options: ServerOptions) -> Tls | None:
    if not (options.grpc_use_ssl or options.grpc_use_ssl_mutual):
        return None
    for flag, value in (("--grpc-server-cert", options.grpc_server_cert), ("--grpc-server-key", options.grpc_server_key)):
        if not value:
            raise InvalidArgument(f"TLS for gRPC needs {flag}=FILE")
    root = Path(options.grpc_root_cert) if options.grpc_root_cert else None
    return Tls(Path(options.grpc_server_cert), Path(options.grpc_server_key), root, mutual=options.grpc_use_ssl_mutual)
