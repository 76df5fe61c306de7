"""The proxy that the tests of the stores rely on: what it breaks is broken, what it counts is true."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import pytest

from emulators.proxy import ALWAYS, Fault, Proxy, Seen, containing, of_kind

CONTENT = b"0123456789" * 50_000


@pytest.fixture
def store() -> Iterator[Proxy]:
    """What stands behind the proxy: itself a proxy, without anything behind."""
    with Proxy() as stub:
        stub.faults.append(Fault(times=ALWAYS, status=200, headers={"ETag": "one", "X-Kept": "yes"}, body=CONTENT))
        yield stub


@pytest.fixture
def proxy(store: Proxy) -> Iterator[Proxy]:
    with Proxy(store.url, kind=lambda seen: "list" if "?" in seen.target else "get") as made:
        yield made


def ask(proxy: Proxy, target: str = "/a", method: str = "GET", body: bytes = b"") -> tuple[int, bytes, dict[str, str]]:
    connection = http.client.HTTPConnection(urlsplit(proxy.url).netloc, timeout=10)
    try:
        connection.request(method, target, body or None)
        answer = connection.getresponse()
        return answer.status, answer.read(), dict(answer.getheaders())
    finally:
        connection.close()


def test_requests_pass_and_are_counted(proxy: Proxy, store: Proxy) -> None:
    status, body, headers = ask(proxy)
    assert (status, body, headers["ETag"]) == (200, CONTENT, "one")
    ask(proxy, "/a?list=1")
    ask(proxy, "/b", "PUT", b"content")
    assert proxy.counts() == {"get": 2, "list": 1}
    assert proxy.methods() == {"GET": 2, "PUT": 1}
    assert [one.target for one in store.seen] == ["/a", "/a?list=1", "/b"]
    proxy.reset()
    assert proxy.counts() == {}


def test_one_connection_serves_many_requests(proxy: Proxy) -> None:
    connection = http.client.HTTPConnection(urlsplit(proxy.url).netloc, timeout=10)
    for _ in range(3):
        connection.request("GET", "/a")
        assert connection.getresponse().read() == CONTENT
    connection.close()


def test_heads_and_chunked_bodies(proxy: Proxy, store: Proxy) -> None:
    assert ask(proxy, method="HEAD")[:2] == (200, b"")
    connection = http.client.HTTPConnection(urlsplit(proxy.url).netloc, timeout=10)
    connection.request("PUT", "/a", iter([b"one", b"two"]), encode_chunked=True, headers={"Transfer-Encoding": "chunked"})
    assert connection.getresponse().read() == CONTENT
    connection.close()
    assert store.seen[-1].headers["content-length"] == "6"


def test_an_answer_of_its_own_for_the_first_requests_that_match(proxy: Proxy, store: Proxy) -> None:
    proxy.faults.append(Fault(of_kind("get"), status=503, times=2, skip=1, body=b"slow down"))
    assert [ask(proxy)[0] for _ in range(4)] == [200, 503, 503, 200]
    assert len(store.seen) == 2
    proxy.faults.append(Fault(containing("/b"), status=403))
    assert [ask(proxy, target)[0] for target in ("/a", "/b", "/b")] == [200, 403, 200]


def test_bodies_are_cut_truncated_and_damaged(proxy: Proxy) -> None:
    proxy.faults.append(Fault(cut_after=1000))
    with pytest.raises(http.client.IncompleteRead) as cut:
        ask(proxy)
    assert len(cut.value.partial) == 1000
    proxy.faults[:] = [Fault(truncate_to=1000)]
    assert ask(proxy)[1] == CONTENT[:1000]
    proxy.faults[:] = [Fault(damage=True)]
    assert ask(proxy)[1] == b"\xcf" + CONTENT[1:]


def test_connections_without_an_answer(proxy: Proxy) -> None:
    proxy.faults.append(Fault(drop=True))
    with pytest.raises(http.client.RemoteDisconnected):
        ask(proxy)
    assert ask(proxy)[0] == 200


def test_headers_are_changed_and_taken_away(proxy: Proxy) -> None:
    proxy.faults.append(Fault(headers={"etag": "", "x-kept": "changed", "X-New": "1"}))
    _, _, headers = ask(proxy)
    assert "ETag" not in headers
    assert (headers["x-kept"], headers["X-New"]) == ("changed", "1")


def test_answers_wait_and_requests_at_once_are_seen(proxy: Proxy) -> None:
    enough = threading.Event()

    def kind(_: Seen) -> str:
        if len(proxy.seen) == 3:
            enough.set()
        return "get"

    proxy.kind = kind
    proxy.faults.append(Fault(until=enough, times=ALWAYS))
    with ThreadPoolExecutor(4) as threads:
        assert [status for status, *_ in threads.map(lambda _: ask(proxy), range(4))] == [200] * 4
    assert proxy.most_at_once == 4
