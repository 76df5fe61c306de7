"""moorage: a model server that serves Triton model repositories from Python."""

__version__ = "0.1.0"
