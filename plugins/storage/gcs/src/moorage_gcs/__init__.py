"""Model repositories in Google Cloud Storage for moorage."""

__version__ = "0.1.0"
