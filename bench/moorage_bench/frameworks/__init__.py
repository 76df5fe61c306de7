"""The frameworks whose backends are measured: how each writes its models, and how it is called without a server."""

from __future__ import annotations

from collections.abc import Mapping

from moorage_bench.frameworks import onnx, openvino, tensorflow, torchscript
from moorage_bench.frameworks.framework import Framework

FRAMEWORKS: Mapping[str, Framework] = {
    "onnx": Framework("onnxruntime", "model.onnx", onnx.write, onnx.bare, parameters={"intra_op_thread_count": "1"}),
    "torchscript": Framework(
        "pytorch", "model.pt", torchscript.write, torchscript.bare, separator="__", parameters={"INTRA_OP_THREAD_COUNT": "1"}
    ),
    "tensorflow": Framework(
        "tensorflow",
        "model.savedmodel",
        tensorflow.write,
        tensorflow.bare,
        platform="tensorflow_savedmodel",
        parameters={"TF_NUM_INTRA_THREADS": "1", "TF_NUM_INTER_THREADS": "2"},
    ),
    "openvino": Framework(
        "openvino", "model.xml", openvino.write, openvino.bare, parameters={"INFERENCE_NUM_THREADS": "{instances}"}
    ),
}

__all__ = ["FRAMEWORKS", "Framework"]
