"""Prometheus metrics: the counts of every version that serves, read when the page is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from attrs import frozen
from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from moorage._admin import ModelStatistics
from moorage._server.machine import MachineCollector
from moorage._server.ports import AdminPort

FAILURE_REASONS: Final = ("REJECTED", "CANCELED", "BACKEND", "OTHER")
_CONTENT_TYPE = b"text/plain; charset=utf-8"


@frozen
class _Family:
    """A metric, and where its value is in the statistics of a version."""

    name: str
    help: str
    value: Callable[[ModelStatistics], float]
    latency: bool = False


def _microseconds(kind: str) -> Callable[[ModelStatistics], float]:
    return lambda statistics: getattr(statistics, kind).ns // 1000


_COUNTERS: Final = (
    _Family("nv_inference_request_success", "Requests that succeeded", lambda s: s.success.count),
    _Family("nv_inference_count", "Requests times their batch size, without cached ones", lambda s: s.inference_count),
    _Family("nv_inference_exec_count", "Executions of the model, each of one batch", lambda s: s.execution_count),
    _Family("nv_inference_request_duration_us", "Microseconds from arrival to answer", _microseconds("success"), True),
    _Family("nv_inference_queue_duration_us", "Microseconds of waiting", _microseconds("queue"), True),
    _Family(
        "nv_inference_compute_input_duration_us", "Microseconds spent on inputs", lambda s: s.compute_input.ns // 1000, True
    ),
    _Family(
        "nv_inference_compute_infer_duration_us", "Microseconds spent in the model", lambda s: s.compute_infer.ns // 1000, True
    ),
    _Family(
        "nv_inference_compute_output_duration_us", "Microseconds spent on outputs", lambda s: s.compute_output.ns // 1000, True
    ),
)


@frozen
class MetricsOptions:
    """What is on the page."""

    latencies: bool = True
    """The durations."""
    machine: bool = True
    """Processor and memory."""


class ModelCollector(Collector):
    """Turns the statistics of the admin service into metric families."""

    def __init__(self, admin: AdminPort, options: MetricsOptions) -> None:
        self._admin = admin
        self._latencies = options.latencies

    def describe(self) -> Sequence[Metric]:
        """Nothing is known beforehand: registering must not read statistics."""
        return ()

    def collect(self) -> Iterator[Metric]:
        models = list(self._admin.statistics())
        if not models:
            return
        for family in _COUNTERS:
            if self._latencies or not family.latency:
                metric = Metric(family.name, family.help, "counter")
                for one in models:
                    _add(metric, one, family.value(one))
                yield metric
        if self._latencies:
            yield _durations(models)
        yield _failures(models)
        yield _pending(models)


def _failures(models: Sequence[ModelStatistics]) -> Metric:
    metric = Metric("nv_inference_request_failure", "Requests that failed, by reason", "counter")
    for one in models:
        for reason, count in _by_reason(one).items():
            _add(metric, one, count, reason=reason)
    return metric


def _add(metric: Metric, one: ModelStatistics, value: float, **labels: str) -> None:
    _add_named(metric, metric.name, one, value, **labels)


def _add_named(metric: Metric, sample: str, one: ModelStatistics, value: float, **labels: str) -> None:
    """A sample with the labels of a version; its namespace is among them where models have one."""
    space = {"namespace": one.namespace} if one.namespace else {}
    metric.add_sample(sample, {"model": one.name, "version": one.version, **space, **labels}, value)


def _durations(models: Sequence[ModelStatistics]) -> Metric:
    name = "moorage_inference_duration_seconds"
    metric = Metric(name, "Seconds from arrival to answer of requests that succeeded", "histogram")
    for one in models:
        for bound, count in one.durations.items():
            _add_named(metric, f"{name}_bucket", one, count, le=f"{bound / 1e9:g}")
        _add_named(metric, f"{name}_bucket", one, one.success.count, le="+Inf")
        _add_named(metric, f"{name}_sum", one, one.success.ns / 1e9)
        _add_named(metric, f"{name}_count", one, one.success.count)
    return metric


def _by_reason(one: ModelStatistics) -> Mapping[str, int]:
    """Failures by reason; what was neither refused nor given up before it ran, the model failed."""
    backend = one.fail.count - one.rejected - one.cancelled
    found = {"REJECTED": one.rejected, "CANCELED": one.cancelled, "BACKEND": backend}
    return dict.fromkeys(FAILURE_REASONS, 0) | found


def _pending(models: Sequence[ModelStatistics]) -> Metric:
    metric = Metric("nv_inference_pending_request_count", "Requests that wait for an instance", "gauge")
    for one in models:
        _add(metric, one, one.pending)
    return metric


def text_page(metrics: Iterable[Metric]) -> bytes:
    """The metrics in Prometheus' text format.

    prometheus_client's own writer puts `_total` behind the name of every counter; Triton's counters have none.
    """
    lines: list[str] = []
    for metric in metrics:
        lines.append(f"# HELP {metric.name} {metric.documentation}")
        lines.append(f"# TYPE {metric.name} {metric.type}")
        for sample in metric.samples:
            labels = ",".join(f'{key}="{_escaped(value)}"' for key, value in sample.labels.items())
            lines.append(f"{sample.name}{{{labels}}} {_number(sample.value)}".replace("{}", ""))
    return "".join(f"{line}\n" for line in lines).encode()


def _number(value: float) -> str:
    text: str = floatToGoString(value)  # type: ignore[no-untyped-call]
    return text


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def metrics_registry(admin: AdminPort, options: MetricsOptions) -> CollectorRegistry:
    """The metrics of a server, to be collected when they are asked for."""
    registry = CollectorRegistry()
    registry.register(ModelCollector(admin, options))
    if options.machine:
        registry.register(MachineCollector())
    return registry


def metrics_app(admin: AdminPort, options: MetricsOptions | None = None) -> Any:
    """An ASGI application that answers `GET /metrics` with all metrics in Prometheus' text format."""
    registry = metrics_registry(admin, options or MetricsOptions())

    async def app(scope: Any, _receive: Any, send: Any) -> None:
        if scope["path"] != "/metrics":
            await _answer(send, 404, b"metrics are at /metrics\n")
        elif scope["method"] not in ("GET", "HEAD"):
            await _answer(send, 405, b"only GET is possible here\n")
        else:
            await _answer(send, 200, text_page(registry.collect()))

    return app


async def _answer(send: Any, status: int, body: bytes) -> None:
    headers = [(b"content-type", _CONTENT_TYPE), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
