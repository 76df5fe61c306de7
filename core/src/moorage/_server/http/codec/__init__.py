"""Inference requests and responses as HTTP carries them: JSON, with tensors in it or behind it in binary."""

from moorage._server.http.codec.raw import decode_raw
from moorage._server.http.codec.request import decode_request
from moorage._server.http.codec.response import EncodedResponse, OutputForms, encode_response

__all__ = ["EncodedResponse", "OutputForms", "decode_raw", "decode_request", "encode_response"]
