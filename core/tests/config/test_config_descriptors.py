"""The wire: descriptors, the .proto files they come from, and the schema that stands for them."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import attrs
import pytest
from google.protobuf.descriptor import Descriptor, EnumDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorSet

import moorage
from moorage.config.fields import MessageSpec, model_config_spec
from moorage.config.proto import POOL, descriptor, message_class, service
from moorage.config.schema import ONEOF

PROTOS = Path(moorage.__file__).parent / "config" / "protos"
FILES = ("model_config.proto", "grpc_service.proto")


def messages_of(file: str) -> list[Descriptor]:
    found = []
    waiting = list(POOL.FindFileByName(file).message_types_by_name.values())
    while waiting:
        one = waiting.pop()
        found.append(one)
        waiting.extend(nested for nested in one.nested_types if not nested.GetOptions().map_entry)
    return found


def enums_of(file: str) -> list[EnumDescriptor]:
    top = list(POOL.FindFileByName(file).enum_types_by_name.values())
    return top + [enum for message in messages_of(file) for enum in message.enum_types]


def declared(file: str) -> dict[str, dict[str, int]]:
    """Message or enum -> {name: number}, read from the text of a .proto file."""
    scopes: list[str] = []
    found: dict[str, dict[str, int]] = {}
    for line in (PROTOS / file).read_text(encoding="utf-8").splitlines():
        opened = re.match(r"\s*(message|enum|oneof|service) (\w+) \{(\}?)", line)
        if opened:
            kind, name, closed = opened.groups()
            if kind in ("message", "enum"):
                found[".".join([scope for scope in scopes if scope] + [name])] = {}
            if not closed:
                scopes.append(name if kind == "message" or kind == "enum" else "")
        elif line.strip() == "}":
            scopes.pop()
        elif numbered := re.match(r"\s*(?:[\w.<>, ]+ )?(\w+) = (\d+);", line):
            found[".".join(scope for scope in scopes if scope)][numbered[1]] = int(numbered[2])
    return found


@pytest.mark.parametrize("file", FILES)
def test_the_compiled_descriptors_are_those_of_the_proto_file(file: str) -> None:
    compiled = {one.full_name.removeprefix("inference."): {f.name: f.number for f in one.fields} for one in messages_of(file)}
    compiled |= {one.full_name.removeprefix("inference."): {v.name: v.number for v in one.values} for one in enums_of(file)}
    assert compiled == declared(file)


@pytest.mark.skipif(importlib.util.find_spec("grpc_tools") is None, reason="grpcio-tools is not installed")
def test_compiling_again_changes_nothing(tmp_path: Path) -> None:
    output = tmp_path / "again.binpb"
    subprocess.run([sys.executable, PROTOS / "compile.py", output], check=True)
    again, kept = (FileDescriptorSet.FromString(path.read_bytes()) for path in (output, PROTOS / "inference.binpb"))
    assert again == kept


def test_every_method_of_the_service_is_that_of_the_official_client() -> None:
    theirs = pytest.importorskip("tritonclient.grpc.service_pb2").DESCRIPTOR.services_by_name["GRPCInferenceService"]
    ours = {method.name: method for method in service().methods}
    for method in theirs.methods:
        mine = ours[method.name]
        assert mine.input_type.full_name == method.input_type.full_name
        assert mine.output_type.full_name == method.output_type.full_name
        assert (mine.client_streaming, mine.server_streaming) == (method.client_streaming, method.server_streaming)


def test_every_field_is_that_of_the_official_client() -> None:
    compared = 0
    for module in ("service_pb2", "model_config_pb2"):
        theirs = pytest.importorskip(f"tritonclient.grpc.{module}").DESCRIPTOR
        waiting = list(theirs.message_types_by_name.values())
        while waiting:
            message = waiting.pop()
            waiting.extend(message.nested_types)
            mine = POOL.FindMessageTypeByName(message.full_name)
            for field in message.fields:
                ours = mine.fields_by_name[field.name]
                assert (ours.number, ours.type, ours.is_repeated) == (field.number, field.type, field.is_repeated)
                assert (ours.containing_oneof is None) == (field.containing_oneof is None)
                compared += 1
    assert compared > 300


def test_messages_travel_between_our_pool_and_the_official_client() -> None:
    theirs = pytest.importorskip("tritonclient.grpc").service_pb2.ModelInferRequest(model_name="m", id="7")
    ours = message_class("ModelInferRequest").FromString(theirs.SerializeToString())
    assert (ours.model_name, ours.id) == ("m", "7")  # type: ignore[attr-defined]
    assert type(theirs).DESCRIPTOR is not descriptor("ModelInferRequest")


def tables() -> list[MessageSpec]:
    found: dict[int, MessageSpec] = {}
    waiting = [model_config_spec()]
    while waiting:
        one = waiting.pop()
        if id(one) not in found:
            found[id(one)] = one
            waiting.extend(spec.message for spec in one.fields if spec.message is not None)
    return [one for one in found.values() if not one.entry]


def schema_names(cls: type) -> list[tuple[str, str]]:
    """(proto field, attribute) in the order of the class; a oneof counts where it stands."""
    names = []
    for attribute in attrs.fields(cls):
        members = attribute.metadata.get(ONEOF)
        if members is None:
            names.append((attribute.metadata.get("proto", attribute.name), attribute.name))
        else:
            names.extend((member, attribute.name) for member in members)
    return names


@pytest.mark.parametrize("table", tables(), ids=lambda table: table.name)
def test_the_schema_names_the_fields_of_the_descriptors(table: MessageSpec) -> None:
    wire = {(spec.name, spec.attribute) for spec in table.fields}
    assert wire == set(schema_names(table.make))  # type: ignore[arg-type]


def test_the_tables_reach_every_message_of_the_configuration() -> None:
    reached = {table.name for table in tables()}
    assert reached == {message.name for message in messages_of("model_config.proto")}


@pytest.mark.parametrize("table", tables(), ids=lambda table: table.name)
def test_unset_fields_have_the_defaults_of_the_wire(table: MessageSpec) -> None:
    made = table.make()
    for spec in table.fields:
        assert spec.read(made) == (None if spec.presence else spec.default), spec.name


def test_enums_have_every_value_of_the_wire() -> None:
    enums = {spec.enum.name: spec.enum for table in tables() for spec in table.fields if spec.enum is not None}
    assert set(enums) == {enum.full_name for enum in enums_of("model_config.proto")}
    for name, enum in enums.items():
        wire = {value.name: value.number for value in POOL.FindEnumTypeByName(name).values}
        assert {value: member.value for value, member in enum.by_name.items()} == wire
        assert len(set(enum.by_name.values())) == len(list(type(next(iter(enum.names)))))


def test_the_descriptors_are_found_inside_an_archive(tmp_path: Path) -> None:
    archive = tmp_path / "moorage.zip"
    package = Path(moorage.__file__).parent
    with zipfile.ZipFile(archive, "w") as packed:
        for path in [package / "__init__.py", package / "errors.py", *package.glob("types/*"), *package.glob("config/**/*")]:
            if path.is_file() and path.suffix != ".pyc":
                packed.write(path, path.relative_to(package.parent))
    code = "import moorage.config.proto as p; print(p.__file__, p.service().name)"
    done = subprocess.run([sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {str(archive)!r}); {code}"],
                          check=True, capture_output=True, text=True)  # fmt: skip
    assert "moorage.zip" in done.stdout
    assert "GRPCInferenceService" in done.stdout
