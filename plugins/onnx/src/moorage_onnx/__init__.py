"""ONNX models for moorage, run by ONNX Runtime."""

__version__ = "0.1.0"
