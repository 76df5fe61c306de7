"""TensorRT plans for moorage."""

__version__ = "0.1.0"
