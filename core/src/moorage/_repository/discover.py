"""Which backend reads a model, as which platform, from which file: what the configuration leaves open is asked of plugins."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from attrs import evolve

from moorage._plugins import FIRST_PARTY, Registry
from moorage.backend import ModelMatch, VersionFiles
from moorage.config.parsed import ParsedConfig
from moorage.config.platforms import ENSEMBLE, KNOWN
from moorage.config.schema import Ensembling, ModelConfig
from moorage.errors import ConfigError, NotFound, PluginError

logger = logging.getLogger(__name__)

Answers = Sequence[tuple[str, ModelMatch]]


def discover(parsed: ParsedConfig, files: VersionFiles, registry: Registry) -> ParsedConfig:
    """Fill `backend`, `platform` and `default_model_filename` where they are not given.

    A backend that is named but not installed is left for the loader to report. Raises ConfigError if nothing reads these
    files, if two plugins disagree about them, or if the platform given is nobody's.
    """
    config = parsed.config
    if config.platform == ENSEMBLE or isinstance(config.scheduling, Ensembling):
        return parsed.with_config(evolve(config, platform=config.platform or ENSEMBLE))
    backend = config.backend or _of_platform(parsed, registry)
    answers, failures = _ask(_views(config, files), registry)
    match = _chosen(parsed, [(plugin, match) for plugin, match in answers if _fits(match, config, backend)])
    if failures and match is None and not backend:
        raise failures[0]
    for failure in failures:
        logger.error("model '%s': %s", files.model_name, failure)
    if match is None:
        match = _by_name(parsed, files, registry) if not backend else _default(backend, config.platform, registry)
    return parsed.with_config(
        evolve(
            config,
            backend=backend or match.backend,
            platform=config.platform or match.platform,
            default_model_filename=config.default_model_filename or match.default_model_filename,
        )
    )


def _of_platform(parsed: ParsedConfig, registry: Registry) -> str:
    """The backend that the platform given implies; empty if none is given."""
    platform = parsed.config.platform
    implied = registry.platforms.get(platform) or KNOWN.get(platform, "")
    if implied or not platform:
        return implied
    try:
        return registry.platform(platform)
    except NotFound as error:
        advice = f'write backend: "{platform}"' if platform in registry.backends else "name the backend instead"
        raise ConfigError([parsed.fault("platform", str(error), advice)], parsed.config.name) from error


def _views(config: ModelConfig, files: VersionFiles) -> list[VersionFiles]:
    """The files as plugins are asked about them: all at once, or only what could be the file or the platform that is given."""
    if config.default_model_filename:
        return [_below(files, config.default_model_filename)]
    return [_below(files, name) for name in sorted(files.top_level())] if config.platform else [files]


def _below(files: VersionFiles, wanted: str) -> VersionFiles:
    """One file or folder alone, as if nothing lay beside it."""
    below = {name for name in files.names if name.startswith(f"{wanted}/")}
    return evolve(files, names=frozenset(below or {wanted}))


def _ask(views: Sequence[VersionFiles], registry: Registry) -> tuple[Answers, list[PluginError]]:
    """What the plugins answer, and the failures of those that broke down: no hindrance if another reads the files."""
    answers: list[tuple[str, ModelMatch]] = []
    failures: list[PluginError] = []
    for view in views:
        for plugin, discoverer in registry.discoverers:
            try:
                match = discoverer(view)
            except PluginError as error:
                failures.append(error)
                continue
            if match is not None:
                answers.append((plugin, match))
    return answers, failures


def _fits(match: ModelMatch, config: ModelConfig, backend: str) -> bool:
    """Whether an answer agrees with what the configuration says."""
    return backend in ("", match.backend) and config.platform in ("", match.platform)


def _chosen(parsed: ParsedConfig, answers: Answers) -> ModelMatch | None:
    matches = {match for _, match in answers}
    if len(matches) > 1:
        said = "; ".join(f"plugin '{plugin}' takes '{m.default_model_filename}' for {m.backend}" for plugin, m in answers)
        message = f"several backends read these files: {said}"
        raise ConfigError([parsed.fault("backend", message, "name the backend in config.pbtxt")], parsed.config.name)
    return matches.pop() if matches else None


def _default(backend: str, platform: str, registry: Registry) -> ModelMatch:
    """What a backend takes when its files tell nothing: its first platform and its usual file name."""
    offered = registry.backends.get(backend)
    if offered is None:
        return ModelMatch(backend, "", "")
    return ModelMatch(backend, platform or next(iter(offered.platforms), ""), offered.default_model_filename)


def _by_name(parsed: ParsedConfig, files: VersionFiles, registry: Registry) -> ModelMatch:
    """The backend that the model's own name ends with (`model.backend`)."""
    _, dot, backend = files.model_name.partition(".")
    if backend not in registry.backends:
        message = _unmatched(files, registry, backend if dot else "")
        advice = _install(files) or _rename(files)
        raise ConfigError([parsed.fault("backend", message, advice)], parsed.config.name)
    match = _default(backend, "", registry)
    return evolve(match, default_model_filename=match.default_model_filename or f"model.{backend}")


def _unmatched(files: VersionFiles, registry: Registry, ending: str) -> str:
    found = ", ".join(sorted(files.top_level())) or "no file"
    looked = ", ".join(_looked_for(registry)) or "nothing, as no backend is installed"
    named = f", and '{ending}', the ending of the model's name, is no backend" if ending else ""
    return f"the backend could not be told from the files of version {files.version}: found {found}; looked for {looked}{named}"


def _looked_for(registry: Registry) -> list[str]:
    """The usual names of model files, by backend."""
    others = {backend: plugin.filenames for plugin in FIRST_PARTY for backend in plugin.backends}
    usual = {name: {cls.default_model_filename: None} for name, cls in sorted(registry.backends.items())}
    return [
        f"{' or '.join(files)} ({name})"
        for name, first in usual.items()
        if (files := list(filter(None, first | dict.fromkeys(others.get(name, ())))))
    ]


def _rename(files: VersionFiles) -> str:
    if not files.names:
        return f"put the model's files into the folder of version {files.version}"
    return "give the model's file one of these names, or set 'backend' and 'default_model_filename' in config.pbtxt"


def _install(files: VersionFiles) -> str:
    """How to get the first-party plugin that reads these files, if there is one."""
    there = (plugin for plugin in FIRST_PARTY if not plugin.planned)
    plugin = next((plugin for plugin in there if files.top_level() & set(plugin.filenames)), None)
    return "" if plugin is None else f"{plugin.install}, or set 'backend' in config.pbtxt"
