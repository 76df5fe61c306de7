"""What a file is, told without running anything that is in it."""

from __future__ import annotations

import io
import pickle
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage_torchscript.contents import Kind, NotAsFoundError, damaged_member, identify
from moorage_torchscript.pickles import UNKNOWN, BrokenPickleError, foreign, imports, is_plain

MODELS = Path(__file__).parent / "models"


def read(name: str) -> bytes:
    return (MODELS / name).read_bytes()


def archived(**parts: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in parts.items():
            archive.writestr(name.replace("__", "/"), data)
    return buffer.getvalue()


@pytest.mark.parametrize(
    "name, kind", [("add_sub.pt", Kind.SCRIPT), ("traced.pt", Kind.SCRIPT), ("add_sub.pt2", Kind.EXPORTED)]
)
def test_knows_what_it_serves(name: str, kind: Kind) -> None:
    assert identify(read(name)).kind is kind


@pytest.mark.parametrize(
    "data, what, advice",
    [
        (read("state_dict.pt"), r"torch.save.*tensors alone.*state_dict", r"load_state_dict.*torch\.export\.save"),
        (read("legacy_state_dict.pt"), r"old format.*tensors alone", "load_state_dict"),
        (
            read("pickled_module.pt"),
            r"Python objects \(torch\.nn\.modules\.linear\.Linear\)",
            r"runs code.*torch\.export\.save",
        ),
        (read("legacy_module.pt"), r"old format.*torch\.nn\.modules\.linear\.Linear", "runs code"),
        (read("pickle.pt"), r"a pickle that holds Python objects \(.*Path\.touch|pathlib", "runs code"),
        (read("marker.pt"), "torch.save that holds Python objects", "runs code"),
        (read("legacy_module.pt")[:70], "cut off or damaged", "upload it again"),
        (read("add_sub.pt")[:400], "ZIP archive that is cut off", "upload it again"),
        (b"", "empty", "upload"),
        (bytes(257) + b"ustar" + bytes(250), "tar archive", "torch.load"),
        (b"version https://git-lfs.github.com/spec/v1\noid", "Git LFS pointer", "git lfs pull"),
        (b"\n<!DOCTYPE html><html>", "web page", "downloaded"),
        (b"\x08\x08\x12\x07pytorch", "ONNX model", 'backend: "onnxruntime"'),
        (b"\x1f\x8b\x08", "gzip", "unpack"),
        (b"\x89HDF\r\n\x1a\n", "HDF5", "SavedModel"),
        (b"nothing known at all", "no PyTorch file", r"torch\.jit\.script"),
        (archived(readme__txt=b"hello"), r"something else \(it holds readme/txt\)", r"torch\.export"),
        (archived(**{"MAR-INF__MANIFEST.json": b"{}"}), "TorchServe", "unpack it"),
        (archived(**{"m__bytecode.pkl": b"", "m__data.pkl": b""}), "torch.save", "upload"),
        (archived(**{"m__bytecode.pkl": b""}), "Mobile", "torch.jit.script"),
    ],
)
def test_says_what_else_a_file_is_and_what_to_do(data: bytes, what: str, advice: str, tmp_path: Path) -> None:
    import re

    found = identify(data)
    assert found.kind is Kind.OTHER
    assert re.search(what, found.what), found
    assert re.search(advice, found.advice), found


def test_looking_at_a_pickle_does_not_run_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("pickle.pt", "marker.pt"):
        identify(read(name))
    assert not (tmp_path / "unpickled").exists()
    pickle.loads(read("pickle.pt"))
    assert (tmp_path / "unpickled").exists(), "the file itself would do it"


@given(st.binary(max_size=300))
def test_any_bytes_get_an_answer(data: bytes) -> None:
    for start in (b"", b"PK\x03\x04", b"\x80\x02", b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19."):
        assert identify(start + data).what


@given(st.integers(0, 10_000), st.integers(0, 255))
def test_a_changed_byte_is_found_or_harms_nothing(at: int, byte: int) -> None:
    data = read("blur.pt")
    begin = data.index(b"PK", 10)  # behind the first header
    changed = bytearray(data)
    place = begin + at % (len(data) - begin)
    changed[place] = byte
    with suppress(NotAsFoundError):
        damaged_member(bytes(changed))


def test_weights_that_were_changed_are_damage() -> None:
    data = bytearray(read("rows.pt"))
    name = "rows/data/0"
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        content = archive.read(name)
    data[data.index(content) + 100] ^= 1
    assert damaged_member(bytes(data)) == name
    assert damaged_member(read("rows.pt")) == ""


def test_names_in_a_pickle_are_read_whatever_the_protocol() -> None:
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        found = imports(pickle.dumps(zipfile.ZipFile, protocol))
        assert found == {("zipfile", "ZipFile")}


def test_a_name_that_is_put_together_is_not_taken_for_another() -> None:
    hidden = b"\x80\x04\x8c\x05torch\x8c\x06device00\x8c\x02os\x8c\x06systemN0\x93."
    assert imports(hidden) == {(UNKNOWN, UNKNOWN)}
    assert not is_plain((UNKNOWN, UNKNOWN))
    assert list(foreign(hidden))


def test_a_pickle_that_is_none_is_broken() -> None:
    with pytest.raises(BrokenPickleError):
        imports(b"\x80\x02no pickle")


@pytest.mark.parametrize(
    "name, plain",
    [
        (("torch._utils", "_rebuild_tensor_v2"), True),
        (("torch", "FloatStorage"), True),
        (("torch", "bfloat16"), True),
        (("collections", "OrderedDict"), True),
        (("torch.storage", "_load_from_bytes"), False),
        (("torch", "load"), False),
        (("torch.nn.modules.linear", "Linear"), False),
        (("builtins", "eval"), False),
        (("os", "system"), False),
    ],
)
def test_what_tensors_need_is_plain(name: tuple[str, str], plain: object) -> None:
    assert is_plain(name) is plain
