"""The example repository serves what its pages promise."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import tritonclient.http

from docs.conftest import ExampleServer
from docs.fences import ROOT
from moorage.config import parse_text, validate

EXAMPLES = ROOT / "examples"
CLIENT = str(EXAMPLES / "classify_digits.py")


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_digits_are_classified_with_the_official_client(protocol: str, server: ExampleServer) -> None:
    port = server.ports[["http", "grpc"].index(protocol)]
    done = server.run([sys.executable, CLIENT, f"--{protocol}", f"127.0.0.1:{port}"])
    assert done.returncode == 0, done.stdout + done.stderr
    assert "accuracy 0.9" in done.stdout


def test_larger_images_are_prepared(server: ExampleServer) -> None:
    with np.load(EXAMPLES / "holdout.npz") as data:
        images = data["images"][:8]
    large = images.repeat(3, axis=1).repeat(5, axis=2)
    client = tritonclient.http.InferenceServerClient(f"127.0.0.1:{server.ports[0]}")
    given = tritonclient.http.InferInput("IMAGE", large.shape, "UINT8")
    given.set_data_from_numpy(large)
    pixels = client.infer("digits_prepare", [given]).as_numpy("PIXELS")
    client.close()
    np.testing.assert_allclose(pixels, images.reshape(8, 64) / 255, atol=1e-6)


def test_add_sub_adds_and_subtracts(server: ExampleServer) -> None:
    client = tritonclient.http.InferenceServerClient(f"127.0.0.1:{server.ports[0]}")
    left, right = np.arange(16, dtype=np.int32), np.full(16, 3, dtype=np.int32)
    inputs = []
    for name, value in (("INPUT0", left), ("INPUT1", right)):
        inputs.append(tritonclient.http.InferInput(name, value.shape, "INT32"))
        inputs[-1].set_data_from_numpy(value)
    answer = client.infer("add_sub", inputs)
    client.close()
    np.testing.assert_array_equal(answer.as_numpy("OUTPUT0"), left + right)
    np.testing.assert_array_equal(answer.as_numpy("OUTPUT1"), left - right)


@pytest.mark.parametrize("config", sorted(EXAMPLES.rglob("config.pbtxt")), ids=lambda file: file.parent.name)
def test_configurations_are_sound(config: Path) -> None:
    assert not validate(parse_text(config.read_text(), file=str(config)))


@pytest.mark.heavy
@pytest.mark.timeout(600)
def test_the_classifier_can_be_trained_again(server: ExampleServer, tmp_path: Path) -> None:
    script = str(EXAMPLES / "training" / "train_digits.py")
    written = ["--model", str(tmp_path / "m.onnx"), "--holdout", str(tmp_path / "h.npz")]
    done = server.run([sys.executable, script, *written], limit=500)
    assert done.returncode == 0, done.stderr
    with np.load(tmp_path / "h.npz") as fresh, np.load(EXAMPLES / "holdout.npz") as committed:
        np.testing.assert_array_equal(fresh["images"], committed["images"])
        np.testing.assert_array_equal(fresh["labels"], committed["labels"])
