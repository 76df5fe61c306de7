"""Broken forms of a model's files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count, islice

import numpy as np
from attrs import frozen

from moorage.testing.model_case import Files

Random = np.random.Generator


@frozen
class Mutant:
    """The files of a version, one of them (or more) broken. `name` says how, so that it can be made again."""

    name: str
    files: Files


def byte_mutants(files: Files, number: int, seed: int = 0) -> list[Mutant]:
    """Files whose bytes were changed without knowing what they mean: the same `number` of mutants for the same seed.

    Every kind of change comes in turn, on a file chosen at random; the files that are left out or emptied are all there are.
    """
    return list(islice(_endless(files, seed), number))


def _endless(files: Files, seed: int) -> Iterator[Mutant]:
    for path in files:
        yield _mutant("empty", path, files, b"")
        yield Mutant(f"without {path}", {name: content for name, content in files.items() if name != path})
    paths = sorted(files)
    for index in count():
        rng = np.random.default_rng((seed, index))
        kind, change = _CHANGES[index % len(_CHANGES)]
        path = paths[int(rng.integers(len(paths)))]
        yield _mutant(f"{kind}, seed {seed}, number {index}", path, files, change(files[path], rng))


def _mutant(kind: str, path: str, files: Files, content: bytes) -> Mutant:
    return Mutant(f"{path}: {kind}", {**files, path: content})


def truncated(content: bytes, rng: Random) -> bytes:
    """The beginning."""
    return content[: int(rng.integers(max(len(content), 1)))]


def noise(content: bytes, rng: Random) -> bytes:
    """Random bytes."""
    return rng.bytes(max(len(content), 64))


def bit_flipped(content: bytes, rng: Random) -> bytes:
    """One bit is another."""
    return _changed(content, rng, 1, lambda byte: byte ^ (1 << int(rng.integers(8))))


def bytes_replaced(content: bytes, rng: Random) -> bytes:
    """Some bytes are others."""
    return _changed(content, rng, int(rng.integers(2, 20)), lambda _: int(rng.integers(256)))


def extreme_bytes(content: bytes, rng: Random) -> bytes:
    """Some bytes are 0, 127, 128 or 255, which lengths and counts do not like."""
    return _changed(content, rng, int(rng.integers(1, 6)), lambda _: int(rng.choice((0, 127, 128, 255))))


def stretch_cut(content: bytes, rng: Random) -> bytes:
    """A stretch is missing."""
    begin, end = _stretch(content, rng)
    return content[:begin] + content[end:]


def stretch_doubled(content: bytes, rng: Random) -> bytes:
    """A stretch is there twice."""
    begin, end = _stretch(content, rng)
    return content[:end] + content[begin:]


def stretch_zeroed(content: bytes, rng: Random) -> bytes:
    """A stretch is zero, as after an upload that was broken off."""
    begin, end = _stretch(content, rng)
    return content[:begin] + bytes(end - begin) + content[end:]


def tail_added(content: bytes, rng: Random) -> bytes:
    """Random bytes follow."""
    return content + rng.bytes(int(rng.integers(1, 64)))


def _changed(content: bytes, rng: Random, number: int, change: Callable[[int], int]) -> bytes:
    changed = bytearray(content or b"\0")
    for place in rng.integers(len(changed), size=number):
        changed[place] = change(changed[place])
    return bytes(changed)


def _stretch(content: bytes, rng: Random) -> tuple[int, int]:
    begin = int(rng.integers(max(len(content), 1)))
    return begin, min(len(content), begin + int(rng.integers(1, max(len(content) // 4, 2))))


_CHANGES: tuple[tuple[str, Callable[[bytes, Random], bytes]], ...] = (
    ("a bit flipped", bit_flipped),
    ("bytes replaced", bytes_replaced),
    ("truncated", truncated),
    ("extreme bytes", extreme_bytes),
    ("a stretch cut", stretch_cut),
    ("a stretch doubled", stretch_doubled),
    ("a stretch zeroed", stretch_zeroed),
    ("noise", noise),
    ("a tail added", tail_added),
)
