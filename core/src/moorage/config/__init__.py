"""Model configurations: the schema, and its text, JSON and protobuf forms."""

from moorage.config.convert import from_proto, to_proto
from moorage.config.json_reader import parse_json
from moorage.config.normalise import normalise
from moorage.config.parsed import ParsedConfig, Position, item_path
from moorage.config.pbtxt import parse_text
from moorage.config.platforms import KNOWN, backend_of, platforms_of
from moorage.config.schema import ModelConfig
from moorage.config.validation import validate
from moorage.config.writers import to_json, to_text

__all__ = [
    "KNOWN",
    "ModelConfig",
    "ParsedConfig",
    "Position",
    "backend_of",
    "from_proto",
    "item_path",
    "normalise",
    "parse_json",
    "parse_text",
    "platforms_of",
    "to_json",
    "to_proto",
    "to_text",
    "validate",
]
