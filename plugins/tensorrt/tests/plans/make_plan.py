"""Builds the plans of the tests with TensorRT for RTX, which needs no GPU for it: `python make_plan.py`.

It needs an environment of its own with `tensorrt-rtx`, which is large and not among the test requirements.
"""

from __future__ import annotations

from pathlib import Path

import tensorrt_rtx as trt

HERE = Path(__file__).parent


def add_sub() -> bytes:
    """`LEFT` and `RIGHT` of [1 to 8, 3] to `TOTAL` and `GAP`."""
    builder = trt.Builder(trt.Logger(trt.Logger.ERROR))
    network = builder.create_network(0)
    left, right = (network.add_input(name, trt.float32, (-1, 3)) for name in ("LEFT", "RIGHT"))
    for name, operation in (("TOTAL", trt.ElementWiseOperation.SUM), ("GAP", trt.ElementWiseOperation.SUB)):
        result = network.add_elementwise(left, right, operation).get_output(0)
        result.name = name
        network.mark_output(result)
    config, profile = builder.create_builder_config(), builder.create_optimization_profile()
    for name in ("LEFT", "RIGHT"):
        profile.set_shape(name, (1, 3), (4, 3), (8, 3))
    config.add_optimization_profile(profile)
    return bytes(builder.build_serialized_network(network, config))


if __name__ == "__main__":
    (HERE / "add_sub_rtx.plan").write_bytes(add_sub())
