"""Compile the .proto files next to this script into `inference.binpb`, a FileDescriptorSet without source locations.

Run it after a change of a .proto file, in an environment that has grpcio-tools: `python compile.py [OUTPUT]`.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
FILES = ("model_config.proto", "grpc_service.proto")


def compile_protos(output: Path) -> None:
    """Write the descriptors of all files, in the order in which they must be added to a pool."""
    protoc = importlib.import_module("grpc_tools.protoc")
    status = protoc.main(["protoc", f"--proto_path={HERE}", f"--descriptor_set_out={output}", *FILES])
    if status != 0:
        raise SystemExit(status)


if __name__ == "__main__":
    compile_protos(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "inference.binpb")
