"""TorchScript models and exported PyTorch programs for moorage."""

__version__ = "0.1.0"
