"""From options to rooms: each function makes one part of a server."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from moorage._admin import AdminSettings, Readiness, ReadinessPolicy
from moorage._app.options import ServerOptions
from moorage._control import ControlSettings
from moorage._control import plugin as control_plugin
from moorage._execution import DEFAULT_MAX_BATCH_SIZE, LoadSettings
from moorage._execution.devices import gpus
from moorage._logging import LogSettings
from moorage._plugins import Registry, load_registry
from moorage._repository import Repositories
from moorage._storage import Cache, Copies, Reporter, Scratch, bytes_of, mounted, split
from moorage._storage import plugin as storage_plugin
from moorage.errors import InvalidArgument

BUILT_IN = (("local storage", storage_plugin), ("control modes", control_plugin))


def load_plugins(blocked: Sequence[str] = ()) -> Registry:
    """The registry of the built-in and the installed plugins."""
    return load_registry(blocked=tuple(blocked), builtins=BUILT_IN)


def copies(options: ServerOptions, registry: Registry, reporter: Reporter | None = None) -> Copies:
    """Where files of remote repositories come to. Removes what killed servers have left there.

    Raises InvalidArgument naming the flag or the variable whose folder cannot be used.
    """
    scratch = Scratch()
    scratch.sweep()
    schemes = {split(url).scheme for url in options.model_repository}
    variables = {storage.mount_variable for scheme, storage in registry.storages.items() if scheme in schemes}
    mounts = {variable: mounted(variable, os.environ[variable]) for variable in variables if os.environ.get(variable)}
    return Copies(scratch, cache=_cache(options), mounts=mounts, reporter=reporter)


def _cache(options: ServerOptions) -> Cache | None:
    try:
        limit = bytes_of(options.model_cache_size)
    except InvalidArgument as error:
        raise InvalidArgument(f"--model-cache-size: {error}") from error
    return Cache(Path(options.model_cache_dir).absolute(), limit) if options.model_cache_dir else None


def repositories(options: ServerOptions, registry: Registry, copies: Copies | None = None) -> Repositories:
    return Repositories(
        options.model_repository,
        registry,
        namespacing=options.model_namespacing,
        config_name=options.model_config_name,
        auto_complete=options.auto_complete,
        variables=dict(os.environ) if options.substitute_variables else None,
        copies=copies,
    )


def load_settings(options: ServerOptions) -> LoadSettings:
    """Raises InvalidArgument naming the flag."""
    by_backend = backend_config(options.backend_config)
    _check_default_max_batch_size(by_backend)
    return LoadSettings(
        auto_complete=options.auto_complete,
        default_max_batch_size=int(by_backend.get("", {}).get(DEFAULT_MAX_BATCH_SIZE, "4")),
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


def _check_default_max_batch_size(by_backend: Mapping[str, Mapping[str, str]]) -> None:
    for backend, settings in by_backend.items():
        text = settings.get(DEFAULT_MAX_BATCH_SIZE, "0")
        if not text.isascii() or not text.isdigit():
            setting = f"{backend},{DEFAULT_MAX_BATCH_SIZE}".removeprefix(",")
            raise InvalidArgument(f"--backend-config {setting}={text}: write a whole number of 0 or more")


def control_settings(options: ServerOptions) -> ControlSettings:
    """Raises InvalidArgument naming the flag."""
    if options.model_control_mode == "poll" and not 0 < options.repository_poll_secs < math.inf:
        raise InvalidArgument("--repository-poll-secs must be more than 0; --model-control-mode=none does not poll")
    if not 0 <= options.repository_settle_secs < math.inf:
        raise InvalidArgument("--repository-settle-secs must be 0 or more")
    return ControlSettings(
        initial_models=options.load_model,
        poll_seconds=options.repository_poll_secs,
        settle_seconds=options.repository_settle_secs,
        max_loaded_models=options.max_loaded_models,
    )


def admin_settings(options: ServerOptions) -> AdminSettings:
    policy = options.readiness if options.strict_readiness else "none"
    if policy == "all" and options.model_control_mode == "on_demand":
        policy = "initial"  # a request for a slow or broken model must not keep the others from being asked
    required = (name.strip() for names in options.required_models for name in names.split(","))
    return AdminSettings(
        server_name=options.id,
        readiness=Readiness(ReadinessPolicy(policy), tuple(name for name in required if name)),
        allow_model_override=options.allow_model_override,
    )


def log_settings(options: ServerOptions) -> LogSettings:
    return LogSettings(
        log_file=options.log_file,
        log_info=options.log_info,
        log_warning=options.log_warning,
        log_error=options.log_error,
        log_verbose_level=options.log_verbose,
        log_format=options.log_format,
    )
