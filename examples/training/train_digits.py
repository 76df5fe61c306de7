"""Trains the digit classifier of the example repository and writes it as an ONNX file.

    python examples/training/train_digits.py

Needs scikit-learn and onnx; the data set comes with the former. Writes repository/digits/1/model.onnx and, for the client, the
digits that the model has not seen: holdout.npz (images: uint8 [N, 8, 8], grey 0 to 255; labels: uint8 [N]).
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

HERE = Path(__file__).resolve().parent
EXAMPLES = HERE.parent


def dataset():
    """Images in [0, 1], flattened, and their labels: one part to train on, one held out."""
    pixels, labels = load_digits(return_X_y=True)
    return train_test_split(pixels.astype(np.float32) / 16, labels, test_size=0.2, random_state=0, stratify=labels)


def train(pixels, labels):
    return MLPClassifier(hidden_layer_sizes=(48,), alpha=1e-2, max_iter=600, tol=1e-3, random_state=0).fit(pixels, labels)


def to_onnx(classifier):
    """PIXELS [batch, 64] -> Gemm -> Relu -> Gemm -> Softmax -> PROBABILITIES [batch, 10]."""
    (w1, w2), (b1, b2) = classifier.coefs_, classifier.intercepts_
    weights = [
        numpy_helper.from_array(value.astype(np.float32), name)
        for name, value in (("w1", w1), ("b1", b1), ("w2", w2), ("b2", b2))
    ]
    nodes = [
        helper.make_node("Gemm", ["PIXELS", "w1", "b1"], ["summed"]),
        helper.make_node("Relu", ["summed"], ["hidden"]),
        helper.make_node("Gemm", ["hidden", "w2", "b2"], ["scores"]),
        helper.make_node("Softmax", ["scores"], ["PROBABILITIES"], axis=1),
    ]
    graph = helper.make_graph(
        nodes,
        "digits",
        [helper.make_tensor_value_info("PIXELS", TensorProto.FLOAT, ["batch", 64])],
        [helper.make_tensor_value_info("PROBABILITIES", TensorProto.FLOAT, ["batch", 10])],
        weights,
    )
    model = helper.make_model(graph, producer_name="moorage-example", opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 9
    onnx.checker.check_model(model, full_check=True)
    return model


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, default=EXAMPLES / "repository" / "digits" / "1" / "model.onnx")
    parser.add_argument("--holdout", type=Path, default=EXAMPLES / "holdout.npz")
    options = parser.parse_args()
    train_pixels, test_pixels, train_labels, test_labels = dataset()
    classifier = train(train_pixels, train_labels)
    print(f"accuracy on the {len(test_labels)} held-out digits: {classifier.score(test_pixels, test_labels):.3f}")
    onnx.save(to_onnx(classifier), options.model)
    grey = np.round(test_pixels * 255).astype(np.uint8).reshape(-1, 8, 8)
    np.savez_compressed(options.holdout, images=grey, labels=test_labels.astype(np.uint8))


if __name__ == "__main__":
    main()
