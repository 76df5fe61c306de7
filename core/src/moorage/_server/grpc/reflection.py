"""Server reflection, by which tools such as grpcurl learn the services; the messages are those of the private pool."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2
from grpc_reflection.v1alpha.reflection import ReflectionServicer

from moorage._server.grpc.lane import Call
from moorage.config import proto

SERVICES: Final = ("grpc.reflection.v1alpha.ServerReflection", "grpc.reflection.v1.ServerReflection")
"""Two names for one service: its messages are alike on the wire."""


class Reflection:
    """Answers each question of a stream at once."""

    def __init__(self, services: Iterable[str]) -> None:
        self._servicer: Any = ReflectionServicer(services, pool=_described())

    def __call__(self, call: Call) -> None:
        call.read(lambda data: self._arrived(call, data))

    def _arrived(self, call: Call, data: bytes | None) -> None:
        if data is None:
            call.finish()
            return
        request = reflection_pb2.ServerReflectionRequest.FromString(data)
        for response in self._servicer.ServerReflectionInfo(iter((request,)), None):
            call.write(response.SerializeToString())
        call.read(lambda more: self._arrived(call, more))


def _described() -> DescriptorPool:
    """A pool of all files that describe the services."""
    pool = DescriptorPool()
    added: set[str] = set()
    for file in (proto.service().file, health_pb2.DESCRIPTOR, reflection_pb2.DESCRIPTOR):
        _add(pool, file, added)
    return pool


def _add(pool: DescriptorPool, file: Any, added: set[str]) -> None:
    """Add a file after those that it depends on."""
    if file.name in added:
        return
    added.add(file.name)
    for dependency in file.dependencies:
        _add(pool, dependency, added)
    copy = FileDescriptorProto()
    file.CopyToProto(copy)
    pool.Add(copy)
