"""Checks of what concerns the model as a whole: platform and backend, batch size, versions, cache, metrics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from moorage.config.parsed import ParsedConfig
from moorage.config.platforms import ENSEMBLE, platforms_of
from moorage.config.schema import Ensembling, HistogramOptions, Latest, MetricControl, SequenceBatching, Specific
from moorage.errors import Fault


def model_faults(parsed: ParsedConfig, platforms: Mapping[str, str]) -> Iterator[Fault]:
    """Faults of the top-level fields."""
    config = parsed.config
    yield from _platform_faults(parsed, platforms)
    if config.max_batch_size < 0:
        message = f"max_batch_size of model '{config.name}' is {config.max_batch_size}"
        yield parsed.fault("max_batch_size", message, "write 0 for a model without a batch dimension, else the largest batch")
    yield from _version_faults(parsed)
    yield from _cache_faults(parsed)
    yield from _metric_faults(parsed)


def _platform_faults(parsed: ParsedConfig, platforms: Mapping[str, str]) -> Iterator[Fault]:
    config = parsed.config
    platform, backend, name = config.platform, config.backend, config.name
    if platform == ENSEMBLE:
        if backend:
            yield parsed.fault("backend", f"the ensemble '{name}' has the backend '{backend}'", "remove backend")
        return
    wanted = platforms.get(platform, "")
    if not platform or isinstance(config.scheduling, Ensembling):
        return
    if not backend and not wanted:
        advice = f'write backend: "{platform}"' if platform.isidentifier() else "write the backend instead"
        yield parsed.fault("platform", f"the platform '{platform}' of model '{name}' is not known", advice)
    elif wanted and backend and backend != wanted:
        message = f"model '{name}' has the backend '{backend}' and the platform '{platform}' of the backend '{wanted}'"
        yield parsed.fault("platform", message, f'remove platform, or write backend: "{wanted}"')
    elif backend and not wanted and platforms_of(backend, platforms):
        choices = " or ".join(f'platform: "{one}"' for one in platforms_of(backend, platforms))
        message = f"model '{name}' has the platform '{platform}', which the backend '{backend}' does not have"
        yield parsed.fault("platform", message, f"remove platform, or write {choices}")


def _version_faults(parsed: ParsedConfig) -> Iterator[Fault]:
    policy, name = parsed.config.version_policy, parsed.config.name
    choice = None if policy is None else policy.choice
    if isinstance(choice, Latest) and choice.num_versions == 0:
        path = "version_policy.latest.num_versions"
        yield parsed.fault(path, f"the version policy of model '{name}' serves no version", "write num_versions: 1 or more")
    elif isinstance(choice, Specific) and not choice.versions:
        path = "version_policy.specific.versions"
        yield parsed.fault(path, f"the version policy of model '{name}' names no version", "write versions: [1], or all { }")


def _cache_faults(parsed: ParsedConfig) -> Iterator[Fault]:
    config = parsed.config
    if config.response_cache is None or not config.response_cache.enable:
        return
    for in_the_way, what in (
        (isinstance(config.scheduling, SequenceBatching), "a sequence batcher"),
        (config.decoupled, "decoupled responses"),
    ):
        if in_the_way:
            message = f"model '{config.name}' has {what}, whose responses cannot be cached"
            yield parsed.fault("response_cache.enable", message, "remove response_cache")


def _metric_faults(parsed: ParsedConfig) -> Iterator[Fault]:
    metrics = parsed.config.model_metrics
    for index, control in enumerate(metrics.metric_control if metrics is not None else ()):
        path = f"model_metrics.metric_control[{index}]"
        yield from _metric_control_faults(parsed, path, control)


def _metric_control_faults(parsed: ParsedConfig, path: str, control: MetricControl) -> Iterator[Fault]:
    owner = f"a metric control of model '{parsed.config.name}'"
    if control.metric_identifier is None or not control.metric_identifier.family:
        advice = 'write metric_identifier { family: "..." }'
        yield parsed.fault(f"{path}.metric_identifier", f"{owner} names no family of metrics", advice)
    options = control.metric_options
    if not isinstance(options, HistogramOptions) or not options.buckets:
        advice = "write histogram_options { buckets: [...] }"
        yield parsed.fault(f"{path}.histogram_options", f"{owner} has no buckets", advice)
