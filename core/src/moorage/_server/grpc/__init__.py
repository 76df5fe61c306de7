"""The gRPC protocol: Triton's `inference.GRPCInferenceService`, standard health and reflection, on grpcio."""

from moorage._server.grpc.access import Restriction, parse_restriction
from moorage._server.grpc.options import GrpcOptions, KeepAlive, Tls
from moorage._server.grpc.server import GrpcServer

__all__ = ["GrpcOptions", "GrpcServer", "KeepAlive", "Restriction", "Tls", "parse_restriction"]
