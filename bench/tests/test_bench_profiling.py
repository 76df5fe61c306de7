"""Reading the samples of py-spy."""

from __future__ import annotations

from moorage_bench.profiling import parse

RAW = """\
process 7:"moorage serve";thread 1 (loop);run (/a/app.py:10);handle (/a/http.py:20);decode (/a/codec.py:5) 30
process 7:"moorage serve";thread 1 (loop);run (/a/app.py:10);handle (/a/http.py:22) 10
process 7:"moorage serve";thread 2 (pool);wait (/a/pool.py:1) 4
process 7:"moorage serve";
"""


def test_samples_are_summed_by_thread_line_and_function() -> None:
    profiles = parse(RAW)
    loop = profiles["process 7, thread 1 (loop)"]
    assert len(profiles) == 2
    assert loop.samples == 40
    assert loop.own == {"/a/codec.py:5 decode": 30, "/a/http.py:22 handle": 10}
    assert loop.within == {"/a/app.py run": 40, "/a/http.py handle": 40, "/a/codec.py decode": 30}
    assert "75.0 %  /a/codec.py:5 decode" in loop.table(1)
