"""Classification."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from moorage._inference.classify import classify
from moorage.errors import RequestError
from moorage.types import DataType, Tensor

LABELS = ["alder", "birch", "cedar"]


def texts(tensor: Tensor) -> list[str]:
    return [value.decode() for value in tensor.array.ravel()]


def test_top_classes_of_each_row_with_labels_where_there_are_any() -> None:
    scores = Tensor("S", DataType.FP32, np.array([[0.1, 0.7, 0.15, 0.05], [4, 3, 2, 9]], np.float32))
    top = classify(scores, 2, LABELS, batched=True)
    assert top.shape == (2, 2) and top.datatype is DataType.BYTES
    assert texts(top) == ["0.700000:1:birch", "0.150000:2:cedar", "9.000000:3", "4.000000:0:alder"]


def test_more_than_there_are_gives_all() -> None:
    assert texts(classify(Tensor("S", DataType.INT32, np.array([3, 9, -1], np.int32)), 10, [], batched=False)) == [
        "9:1",
        "3:0",
        "-1:2",
    ]


def test_half_precision_is_classified_too() -> None:
    scores = Tensor("S", DataType.BF16, np.array([[1, 2]], ml_dtypes.bfloat16))
    assert texts(classify(scores, 1, [], batched=True)) == ["2.000000:1"]


def test_text_cannot_be_classified() -> None:
    with pytest.raises(RequestError, match="NAMES"):
        classify(Tensor("NAMES", DataType.BYTES, np.array([b"x"], object)), 1, [], batched=False)
