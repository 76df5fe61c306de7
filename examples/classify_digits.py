"""Classifies handwritten digits with the official Triton client.

    python examples/classify_digits.py              over HTTP
    python examples/classify_digits.py --grpc       over gRPC

The digits (holdout.npz) are those that the model was not trained on. Each batch goes to `digits_prepare`, which makes pixels of
the images, and then to `digits`. Ends with 1 if fewer than nine in ten are right.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import tritonclient.grpc
import tritonclient.http
from tritonclient.utils import InferenceServerException

HOLDOUT = Path(__file__).resolve().parent / "holdout.npz"
BATCH = 32
GOOD_ENOUGH = 0.9
INK = " .:-=+*#%@"


def is_live(client):
    """Whether a server answers; each protocol has an error of its own for "no connection"."""
    try:
        return client.is_server_live()
    except (OSError, InferenceServerException):
        return False


def infer(protocol, client, model, name, array, output):
    """One request with one input; the output as an array."""
    datatype = {"uint8": "UINT8", "float32": "FP32"}[str(array.dtype)]
    tensor = protocol.InferInput(name, array.shape, datatype)
    tensor.set_data_from_numpy(array)
    return client.infer(model, [tensor], outputs=[protocol.InferRequestedOutput(output)]).as_numpy(output)


def classify(protocol, client, images):
    """The most probable digit of each image, and its probability."""
    pixels = infer(protocol, client, "digits_prepare", "IMAGE", images, "PIXELS")
    probabilities = infer(protocol, client, "digits", "PIXELS", pixels, "PROBABILITIES")
    return probabilities.argmax(axis=1), probabilities.max(axis=1)


def classify_all(protocol, client, images):
    batches = [classify(protocol, client, images[at : at + BATCH]) for at in range(0, len(images), BATCH)]
    return tuple(np.concatenate(parts) for parts in zip(*batches, strict=True))


def drawn(image):
    """An image as lines of text."""
    return ["".join(INK[value * (len(INK) - 1) // 255] * 2 for value in row) for row in image.astype(int)]


def show(images, digits, probabilities):
    titles = [f"{digit} ({probability:.0%})".ljust(18) for digit, probability in zip(digits, probabilities, strict=True)]
    rows = zip(*map(drawn, images), strict=True)
    print("\n".join(["  ".join(titles), *("  ".join(line.ljust(18) for line in row) for row in rows)]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--grpc", nargs="?", const="127.0.0.1:8001", metavar="HOST:PORT", help="use gRPC")
    parser.add_argument("--http", default="127.0.0.1:8000", metavar="HOST:PORT")
    options = parser.parse_args()
    protocol = tritonclient.grpc if options.grpc else tritonclient.http
    with np.load(HOLDOUT) as data:
        images, labels = data["images"], data["labels"]
    address = options.grpc or options.http
    client = protocol.InferenceServerClient(address)
    try:
        if not is_live(client):
            print(f"no server answers at {address}; start one with `make serve`", file=sys.stderr)
            return 1
        digits, probabilities = classify_all(protocol, client, images)
    finally:
        client.close()
    show(images[:4], digits[:4], probabilities[:4])
    accuracy = float((digits == labels).mean())
    print(f"{len(labels)} digits over {'gRPC' if options.grpc else 'HTTP'}, accuracy {accuracy:.3f}")
    return 0 if accuracy >= GOOD_ENOUGH else 1


if __name__ == "__main__":
    sys.exit(main())
