"""Extensions that are not there say so."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.mark.parametrize("kind", ["systemsharedmemory", "cudasharedmemory"])
async def test_no_region_can_be_registered(any_client: Any, kind: str) -> None:
    refused = await any_client.post(f"/v2/{kind}/region/r/register", {"key": "/r", "byte_size": 8})
    assert (refused.status, "'r'" in refused.json["error"]) == (501, True)
    listed = await any_client.ask("GET", f"/v2/{kind}/status")
    assert (listed.status, listed.json) == (200, [])
    assert (await any_client.ask("GET", f"/v2/{kind}/region/r/status")).status == 404
    for path in (f"/v2/{kind}/unregister", f"/v2/{kind}/region/r/unregister"):
        assert (await any_client.post(path, {})).status == 200


@pytest.mark.parametrize("path", ["/v2/trace/setting", "/v2/models/ident/trace/setting"])
async def test_there_are_no_trace_settings(any_client: Any, path: str) -> None:
    assert (await any_client.ask("GET", path)).status == 501
    assert (await any_client.post(path, {"trace_rate": "5"})).status == 501
    assert (await any_client.ask("PUT", path)).status == 405
