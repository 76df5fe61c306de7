"""The metrics page."""

from pathlib import Path
from typing import Any

from attrs import evolve
from prometheus_client.parser import text_string_to_metric_families

from moorage._server.machine import MachineCollector
from moorage._server.metrics import MetricsOptions, metrics_app, text_page


async def page(client: Any, admin: Any, options: MetricsOptions | None = None) -> Any:
    return await type(client)(metrics_app(admin, options)).ask("GET", "/metrics")


async def test_values_and_labels(client: Any, admin: Any) -> None:
    answer = await page(client, admin)
    assert (answer.status, answer.headers["content-type"]) == (200, "text/plain; charset=utf-8")
    lines = answer.body.decode().splitlines()
    for line in (
        "# TYPE nv_inference_count counter",
        'nv_inference_request_success{model="ident",version="1"} 5.0',
        'nv_inference_request_failure{model="ident",version="1",reason="BACKEND"} 2.0',
        'nv_inference_request_failure{model="ident",version="1",reason="REJECTED"} 0.0',
        'nv_inference_count{model="ident",version="1"} 7.0',
        'nv_inference_exec_count{model="ident",version="1"} 3.0',
        'nv_inference_request_duration_us{model="ident",version="1"} 5.0',
        'nv_inference_compute_infer_duration_us{model="ident",version="1"} 2.0',
        "# TYPE nv_inference_pending_request_count gauge",
        'nv_inference_pending_request_count{model="ident",version="1"} 0.0',
        "nv_pinned_memory_pool_used_bytes 0.0",
    ):
        assert line in lines
    assert list(text_string_to_metric_families(answer.body.decode()))


async def test_families_can_be_left_out(client: Any, admin: Any) -> None:
    answer = await page(client, admin, MetricsOptions(latencies=False, machine=False))
    assert b"nv_inference_count" in answer.body
    assert b"duration_us" not in answer.body
    assert b"nv_cpu" not in answer.body


async def test_no_models_no_families(client: Any, admin: Any) -> None:
    admin.stats = []
    assert b"nv_inference" not in (await page(client, admin)).body


async def test_labels_are_escaped(client: Any, admin: Any) -> None:
    odd = 'a"b\\c\nd'
    admin.stats = [evolve(admin.stats[0], name=odd)]
    text = (await page(client, admin)).body.decode()
    names = {s.labels["model"] for f in text_string_to_metric_families(text) for s in f.samples if "model" in s.labels}
    assert names == {odd}


async def test_other_paths_and_methods(client: Any, admin: Any) -> None:
    metrics = type(client)(metrics_app(admin))
    assert (await metrics.ask("GET", "/")).status == 404
    assert (await metrics.ask("POST", "/metrics")).status == 405


def test_the_machine(tmp_path: Path) -> None:
    stat, memory = tmp_path / "stat", tmp_path / "meminfo"
    stat.write_text("cpu 10 0 10 70 10 0 0 0 0 0\n")
    memory.write_text("MemTotal: 100 kB\nMemFree: 1 kB\nMemAvailable: 40 kB\n")
    collector = MachineCollector(stat, memory)
    list(collector.collect())
    stat.write_text("cpu 40 0 30 110 20 0 0 0 0 0\n")
    lines = text_page(collector.collect()).decode().splitlines()
    assert "nv_cpu_utilization 0.5" in lines
    assert "nv_cpu_memory_total_bytes 102400.0" in lines
    assert "nv_cpu_memory_used_bytes 61440.0" in lines


def test_a_machine_without_proc(tmp_path: Path) -> None:
    assert b"nv_cpu" not in text_page(MachineCollector(tmp_path / "none", tmp_path / "none").collect())
