"""From options to rooms: each function makes one part of a server."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from moorage._app.options import ServerOptions
from moorage._control import ControlSettings
from moorage._control import plugin as control_plugin
from moorage._execution import LoadSettings
from moorage._execution.devices import gpus
from moorage._logging import LogSettings
from moorage._plugins import Registry, load_registry
from moorage._repository import Repositories
from moorage._server.grpc import GrpcOptions, KeepAlive, Tls, parse_restriction
from moorage._server.http import HttpOptions, parse_restricted
from moorage._server.metrics import MetricsOptions
from moorage._storage import plugin as storage_plugin
from moorage.errors import InvalidArgument

BUILT_IN = (("local storage", storage_plugin), ("control modes", control_plugin))
DEFAULT_MAX_BATCH_SIZE = "default-max-batch-size"


def load_plugins(blocked: Sequence[str] = ()) -> Registry:
    """The registry of the built-in and the installed plugins."""
    return load_registry(blocked=tuple(blocked), builtins=BUILT_IN)


def repositories(options: ServerOptions, registry: Registry) -> Repositories:
    return Repositories(
        options.model_repository,
        registry,
        namespacing=options.model_namespacing,
        config_name=options.model_config_name,
        auto_complete=not options.disable_auto_complete_config,
        variables=dict(os.environ) if options.substitute_variables else None,
    )


def load_settings(options: ServerOptions) -> LoadSettings:
    """Raises InvalidArgument naming the flag."""
    by_backend = backend_config(options.backend_config)
    return LoadSettings(
        auto_complete=not options.disable_auto_complete_config,
        default_max_batch_size=_default_max_batch_size(by_backend),
        backend_config=by_backend,
        gpus=gpus(),
    )


def backend_config(values: Sequence[str]) -> Mapping[str, Mapping[str, str]]:
    """`--backend-config` values by backend, "" for those of all.

    Raises InvalidArgument for one that is not [BACKEND,]KEY=VALUE.
    """
    found: dict[str, dict[str, str]] = {}
    for text in values:
        target, equals, value = text.partition("=")
        backend, comma, key = target.rpartition(",")
        if not equals or not key.strip() or (comma and not backend.strip()):
            raise InvalidArgument(f"--backend-config '{text}': write BACKEND,KEY=VALUE or KEY=VALUE")
        found.setdefault(backend.strip(), {})[key.strip()] = value
    return found


def _default_max_batch_size(by_backend: Mapping[str, Mapping[str, str]]) -> int:
    text = by_backend.get("", {}).get(DEFAULT_MAX_BATCH_SIZE, "4")
    if not text.isascii() or not text.isdigit():
        raise InvalidArgument(f"--backend-config {DEFAULT_MAX_BATCH_SIZE}={text}: write a whole number of 0 or more")
    return int(text)


def control_settings(options: ServerOptions) -> ControlSettings:
    return ControlSettings(initial_models=options.load_model, poll_seconds=options.repository_poll_secs)


def log_settings(options: ServerOptions) -> LogSettings:
    return LogSettings(
        log_file=options.log_file,
        log_info=options.log_info,
        log_warning=options.log_warning,
        log_error=options.log_error,
        log_verbose_level=options.log_verbose,
        log_format=options.log_format,
    )


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
