"""Prints what wrk and perf_analyzer print at the end of a run."""

from __future__ import annotations

print("Requests/sec:  1234.50")
print("Concurrency: 1, throughput: 987.6 infer/sec, latency 1012 usec")
