"""Models written in Python for moorage, with the interface of Triton's Python backend."""

__version__ = "0.1.0"
