"""Groups of endpoints that need a key: as a value, and in a file that changes."""

from __future__ import annotations

from pathlib import Path

import pytest
import tritonclient.grpc
from tritonclient.utils import InferenceServerException

from inputs.conftest import Serve
from inputs.live import LiveServer
from inputs.models import copy
from inputs.repository import model
from moorage._server.secret import Secret
from moorage.errors import InvalidArgument


def load_by_grpc(server: LiveServer, headers: dict[str, str]) -> str:
    """The status of a load by the official client, "" if it went well."""
    with tritonclient.grpc.InferenceServerClient(f"127.0.0.1:{server.ports[1]}") as client:
        try:
            client.load_model("m", headers=headers)
        except InferenceServerException as error:
            return str(error.status())
    return ""


def replace(file: Path, text: str) -> None:
    """Change a file as secrets are changed: by another that takes its place."""
    other = file.with_name("other")
    other.write_text(text)
    other.replace(file)


def test_a_group_needs_its_header(serve: Serve, tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("s1\n")
    server = serve(
        model("m", copy()),
        "--model-control-mode=explicit",
        "--load-model=m",
        f"--http-restricted-api=model-repository:admin-key=@{key}",
        f"--grpc-restricted-protocol=model-repository:admin-key=@{key}",
    )
    metadata = "triton-grpc-protocol-admin-key"

    def answers(value: str) -> tuple[int, str]:
        return server.load("m", admin_key=value).status, load_by_grpc(server, {metadata: value})

    refused = (403, "StatusCode.UNAVAILABLE")
    assert server.load("m").status == 403
    assert "admin-key" in server.load("m").error
    assert "s1" not in server.load("m").error
    assert server.post("/v2/repository/index").status == 403
    assert load_by_grpc(server, {}) == "StatusCode.UNAVAILABLE"
    assert load_by_grpc(server, {"admin-key": "s1"}) == "StatusCode.UNAVAILABLE"
    assert [answers(value) for value in ("s1", "wrong", "", "s", "s11")] == [(200, ""), *[refused] * 4]
    assert server.output("m", [1]) == [1]
    replace(key, "s2")
    assert [answers(value) for value in ("s1", "s2")] == [refused, (200, "")]
    key.write_text("s3")
    assert [answers(value) for value in ("s2", "s3")] == [refused, (200, "")]
    key.unlink()
    assert [answers(value) for value in ("s3", "")] == [refused, refused]
    key.write_text("s4\n")
    assert answers("s4") == (200, "")
    assert server.output("m", [1]) == [1]
    assert "s4" not in server.log


def test_a_file_of_a_secret_that_is_not_there(serve: Serve, tmp_path: Path) -> None:
    for flag in ("--http-restricted-api", "--grpc-restricted-protocol"):
        with pytest.raises(RuntimeError, match="nowhere' with the secret cannot be read"):
            serve(None, f"{flag}=health:key=@{tmp_path / 'nowhere'}")


def test_secrets(tmp_path: Path) -> None:
    assert Secret("a").matches(b"a")
    assert Secret("@@a").matches(b"@a")
    assert not Secret("a").matches(None)
    assert not Secret("").matches(None)
    empty = tmp_path / "empty"
    empty.write_text(" \n")
    with pytest.raises(InvalidArgument, match="is empty"):
        Secret(f"@{empty}")
    empty.write_text("now")
    secret = Secret(f"@{empty}")
    empty.write_text("")
    assert not secret.matches(b"")
    assert not secret.matches(b"now")
    link = tmp_path / "link"
    link.symlink_to(empty)
    empty.write_text("one")
    linked = Secret(f"@{link}")
    (tmp_path / "two").write_text("two")
    link.unlink()
    link.symlink_to(tmp_path / "two")
    assert linked.matches(b"two")
