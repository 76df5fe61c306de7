"""Model repositories in S3, and in stores that speak its language."""

__version__ = "0.1.0"
