"""Repositories on web servers: which links count, how files are brought, what is said when something is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import fsspec.config
import pytest
from tenacity import wait_none

from emulators.proxy import ALWAYS, Fault, Proxy
from moorage._storage.schemes.web import WebStorage
from moorage.errors import StorageError
from moorage.storage import Entry

DATE = {"Last-Modified": "Mon, 30 Nov 2026 10:00:00 GMT"}
FILE = bytes(index * index % 251 for index in range(1000))


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    """A web server that has what `page` and `file` add to it."""
    monkeypatch.setattr("moorage.storage.transfer.PAUSES", wait_none())
    with Proxy() as proxy:
        yield proxy


def page(server: Proxy, path: str, *links: str, title: str = "Index of") -> None:
    listed = "".join(f'<a class="x" href="{link}">{link}</a>' for link in links)
    head = f"<head><link href='style.css'><title>{title} {path}</title></head>"
    body = f"<html>{head}{listed}{server.url}/models/not-a-link</html>".encode()
    server.faults.append(
        Fault(lambda seen: seen.target == path, ALWAYS, status=200, body=body, headers={"Content-Type": "text/html"})
    )


def file(server: Proxy, path: str, content: bytes = FILE) -> None:
    server.faults.append(Fault(lambda seen: seen.target == path, ALWAYS, status=200, body=content, headers=DATE))


def listed(server: Proxy, path: str = "/models") -> dict[str, Entry]:
    return {entry.path: entry for entry in WebStorage().list(f"{server.url}{path}")}


def test_only_links_to_files_below_count(server: Proxy) -> None:
    page(
        server,
        "/models/",
        *("?C=N;O=D", "?C=M&amp;O=A", "/", "../", "..", "#top", "mailto:me@example.com", "javascript:x()"),
        *("https://example.com/models/other", "/elsewhere/file", "./m/", "/models/config.pbtxt", "a&amp;b.txt", "a space.txt"),
    )
    page(server, "/models/m/", "/models/", "1/")
    page(server, "/models/m/1/", "../", "my%20model%23%25.bin")
    for path in ("/models/config.pbtxt", "/models/a&b.txt", "/models/a%20space.txt", "/models/m/1/my%20model%23%25.bin"):
        file(server, path)
    server.faults.append(
        Fault(
            lambda seen: seen.target == "/models",
            ALWAYS,
            status=200,
            body=server.faults[0].body,
            headers=server.faults[0].headers,
        )
    )
    assert set(listed(server)) == {"config.pbtxt", "a&b.txt", "a space.txt", "m/1/my model#%.bin"}
    assert WebStorage().read(f"{server.url}/models", "m/1/my model#%.bin") == FILE


@pytest.fixture
def repository(server: Proxy) -> str:
    page(server, "/models", "m.bin")
    file(server, "/models/m.bin")
    return f"{server.url}/models"


def test_sizes_and_dates_come_from_the_files(server: Proxy, repository: str) -> None:
    (entry,) = WebStorage().list(repository)
    assert entry == Entry("m.bin", 1000, f"1000-{DATE['Last-Modified']}")
    assert server.methods() == {"GET": 1, "HEAD": 1}


@pytest.mark.parametrize("title, empty", [("Index of", True), ("Directory listing for", True), ("Please log in", False)])
def test_only_a_listing_can_be_empty(title: str, empty: bool, server: Proxy) -> None:
    for path in ("/models", "/models/"):
        page(server, path, "/style.css", title=title)
    if empty:
        assert listed(server) == {}
    else:
        with pytest.raises(StorageError, match="is no listing of files"):
            listed(server)


@pytest.mark.parametrize(
    "status, said",
    [(401, "refuses access (401)"), (403, "FSSPEC_HTTP="), (404, "does not exist"), (410, "status 410"), (503, "is at fault")],
)
def test_what_servers_answer(status: int, said: str, server: Proxy) -> None:
    server.faults.append(Fault(times=ALWAYS, status=status))
    with pytest.raises(StorageError) as caught:
        listed(server)
    assert said in str(caught.value)
    assert len(server.seen) == (5 if status == 503 else 1)


def test_a_file_that_cannot_be_asked_about_fails_the_listing(server: Proxy, repository: str) -> None:
    server.faults.insert(0, Fault(lambda seen: seen.target.endswith(".bin"), ALWAYS, status=403))
    with pytest.raises(StorageError, match=r"refuses access \(403\)"):
        WebStorage().list(repository)


@pytest.mark.parametrize(
    "url, said",
    [
        ("http://no-such-host.invalid/models", "there is no host 'no-such-host.invalid'"),
        ("http://127.0.0.1:1/models", "127.0.0.1:1 cannot"),
    ],
)
def test_servers_that_cannot_be_reached(url: str, said: str, server: Proxy) -> None:
    with pytest.raises(StorageError, match=said):
        WebStorage().list(url)


def test_what_breaks_is_brought_to_its_end(server: Proxy, tmp_path: Path) -> None:
    content = bytes(range(256)) * 8000
    page(server, "/models", "m.bin")
    server.faults.append(Fault(lambda seen: seen.method == "GET", 2, skip=1, cut_after=1_000_000, status=200, body=content))
    file(server, "/models/m.bin", content)
    storage, url, arrived = WebStorage(), f"{server.url}/models", list[int]()
    storage.download(url, storage.list(url), tmp_path, arrived.append)
    assert (tmp_path / "m.bin").read_bytes() == content
    assert sum(arrived) == len(content)


@pytest.mark.parametrize("status", [200, 206])
def test_the_rest_of_a_file_can_be_had(status: int, server: Proxy, repository: str) -> None:
    """A server without ranges sends all of it again; one with ranges, what is asked for."""
    storage = WebStorage()
    (entry,) = storage.list(repository)
    body = FILE if status == 200 else FILE[300:]
    server.faults.insert(0, Fault(lambda seen: seen.headers.get("range") == "bytes=300-", status=status, body=body))
    assert b"".join(storage.pieces(storage.place(repository), entry, 300, 1000)) == FILE[300:]
    assert server.seen[-1].headers["range"] == "bytes=300-"


def test_a_file_that_ends_early_has_changed(server: Proxy, repository: str, tmp_path: Path) -> None:
    entries = WebStorage().list(repository)
    server.faults.insert(0, Fault(lambda seen: seen.target.endswith(".bin"), ALWAYS, truncate_to=10, status=200, body=FILE))
    with pytest.raises(StorageError, match=r"'m\.bin' has changed: it is shorter than it was listed"):
        WebStorage().download(repository, entries, tmp_path)


def test_headers_of_the_configuration_are_sent(
    server: Proxy, repository: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(fsspec.config.conf, "http", {})
    fsspec.config.set_conf_env(fsspec.config.conf, {"FSSPEC_HTTP": '{"headers": {"Authorization": "Bearer me"}}'})
    storage = WebStorage()
    storage.download(repository, storage.list(repository), tmp_path)
    storage.read(repository, "m.bin")
    assert {seen.headers.get("authorization") for seen in server.seen} == {"Bearer me"}
