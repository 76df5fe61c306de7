"""Content codings on their own."""

import contextlib
import gzip
import random
import time
import tracemalloc
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage._server.http.compression import accepted_coding, compress, decode_body, decompress
from moorage.errors import RequestError, TooLarge, Unsupported


@given(st.lists(st.binary(max_size=50), min_size=1, max_size=4), st.sampled_from(["gzip", "deflate"]))
def test_round_trip(parts: list[bytes], coding: str) -> None:
    assert decompress(compress(parts, coding), coding, 1000) == b"".join(parts)


def test_several_members_and_raw_deflate() -> None:
    assert decompress(gzip.compress(b"a") + gzip.compress(b"b"), "gzip", 10) == b"ab"
    engine = zlib.compressobj(wbits=-15)
    assert decompress(engine.compress(b"raw data") + engine.flush(), "deflate", 10) == b"raw data"


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
def test_a_bomb_is_stopped(coding: str) -> None:
    bomb = compress([bytes(10_000_000)], coding)
    assert len(bomb) < 100_000
    tracemalloc.start()
    with pytest.raises(TooLarge):
        decompress(bomb, coding, 1000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1_000_000
    assert len(decompress(bomb, coding, 10_000_000)) == 10_000_000


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
def test_broken_data(coding: str) -> None:
    whole = compress([b"hello, hello, hello"], coding)
    for data in (b"", b"nonsense", whole[:-1], whole[:5], whole + b"stray"):
        with pytest.raises(RequestError):
            decompress(data, coding, 1000)


@given(st.binary(max_size=30), st.sampled_from(["gzip", "deflate"]))
def test_anything_is_decompressed_or_refused(data: bytes, coding: str) -> None:
    with contextlib.suppress(RequestError, TooLarge):
        assert len(decompress(data, coding, 100)) <= 100


async def test_codings_are_undone_in_reverse() -> None:
    data = gzip.compress(zlib.compress(b"x"))
    assert bytes(await decode_body(memoryview(data), "deflate, gzip", 100)) == b"x"
    with pytest.raises(Unsupported, match="br"):
        await decode_body(memoryview(b""), "gzip, br", 100)


async def test_large_bodies_are_decompressed_elsewhere() -> None:
    noise = bytes(range(256)) * 8192
    data = zlib.compress(noise, 0)
    assert bytes(await decode_body(memoryview(data), "deflate", len(noise))) == noise


@pytest.mark.parametrize(
    "header,coding",
    [
        ("", ""),
        ("gzip", "gzip"),
        ("deflate", "deflate"),
        ("br, gzip", "gzip"),
        ("br", ""),
        ("GZIP", "gzip"),
        ("gzip;q=0", ""),
        ("gzip;q=0.1, deflate;q=0.9", "deflate"),
        ("gzip, deflate", "gzip"),
        ("*", "gzip"),
        ("*;q=0", ""),
        ("gzip;q=0, *", "deflate"),
        ("identity", ""),
        ("gzip;q=0.2, identity;q=0.8", ""),
        ("gzip;q=nonsense", ""),
    ],
)
def test_accept_encoding(header: str, coding: str) -> None:
    assert accepted_coding(header) == coding


def test_many_empty_members_cost_what_they_are_long() -> None:
    members = gzip.compress(b"") * 100_000
    began = time.process_time()
    assert decompress(members, "gzip", 1000) == b""
    assert time.process_time() - began < 4, "the rest of the body is copied for each member"


@pytest.mark.parametrize("size", [1, 1023, 1024, 1025, 5000])
def test_members_end_anywhere(size: int) -> None:
    data = random.Random(size).randbytes(4 * size)
    members = b"".join(gzip.compress(data[at : at + size]) for at in range(0, len(data), size))
    assert decompress(members, "gzip", len(data)) == data
    with pytest.raises(TooLarge):
        decompress(members, "gzip", len(data) - 1)
    with pytest.raises(RequestError, match="cut off"):
        decompress(members[:-1], "gzip", len(data))
