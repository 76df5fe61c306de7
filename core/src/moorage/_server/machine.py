"""Metrics of the machine: processor, memory, and the pinned memory pool that Triton has and we have not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

_STAT = Path("/proc/stat")
_MEMORY = Path("/proc/meminfo")


class MachineCollector(Collector):
    """Reads Linux's `/proc`; where there is none, only the pinned memory pool is told."""

    def __init__(self, stat: Path = _STAT, memory: Path = _MEMORY) -> None:
        self._stat = stat
        self._memory = memory
        self._before = (0, 0)

    def describe(self) -> Sequence[Metric]:
        """Nothing: registering must not read anything."""
        return ()

    def collect(self) -> Iterator[Metric]:
        yield GaugeMetricFamily("nv_pinned_memory_pool_total_bytes", "Pinned memory pool; there is none", value=0)
        yield GaugeMetricFamily("nv_pinned_memory_pool_used_bytes", "Pinned memory in use", value=0)
        try:
            utilization = self._utilization()
            total, used = self._memory_bytes()
        except (OSError, ValueError, KeyError):
            return
        yield GaugeMetricFamily("nv_cpu_utilization", "Share of the processors in use since the last look", value=utilization)
        yield GaugeMetricFamily("nv_cpu_memory_total_bytes", "Memory of the machine", value=total)
        yield GaugeMetricFamily("nv_cpu_memory_used_bytes", "Memory of the machine in use", value=used)

    def _utilization(self) -> float:
        times = [int(part) for part in self._stat.read_text().splitlines()[0].split()[1:9]]
        total, idle = sum(times), times[3] + times[4]
        (total_before, idle_before), self._before = self._before, (total, idle)
        passed = total - total_before
        return 1 - (idle - idle_before) / passed if passed > 0 else 0.0

    def _memory_bytes(self) -> tuple[int, int]:
        fields = dict(line.split(":", 1) for line in self._memory.read_text().splitlines() if ":" in line)
        total = int(fields["MemTotal"].split()[0]) * 1024
        return total, total - int(fields["MemAvailable"].split()[0]) * 1024
