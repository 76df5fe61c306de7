"""TensorFlow models for moorage: SavedModels and frozen graphs."""

__version__ = "0.1.0"
