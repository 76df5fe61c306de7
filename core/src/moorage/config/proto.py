"""The protobuf messages of the inference protocol, in a pool of their own.

Official clients register the same symbols in protobuf's default pool; with a private one both live in one process.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from google.protobuf.descriptor import Descriptor, ServiceDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

PACKAGE = "inference"
SERVICE = f"{PACKAGE}.GRPCInferenceService"


def _load() -> DescriptorPool:
    raw = files("moorage.config").joinpath("protos", "inference.binpb").read_bytes()
    made = DescriptorPool()
    for file in FileDescriptorSet.FromString(raw).file:
        made.Add(file)
    return made


POOL = _load()
"""The private pool, filled from the compiled descriptors that this package carries."""


def descriptor(name: str) -> Descriptor:
    """The descriptor of a message of package `inference`; nested messages have dots ("ModelWarmup.Input").

    Raises KeyError if there is none.
    """
    return POOL.FindMessageTypeByName(f"{PACKAGE}.{name}")


@cache
def message_class(name: str) -> type[Message]:
    """The class of a message of package `inference`, e.g. "ModelInferRequest". Raises KeyError if there is none."""
    return GetMessageClass(descriptor(name))


def service() -> ServiceDescriptor:
    """The inference service with all its methods."""
    return POOL.FindServiceByName(SERVICE)
