"""Model repositories in Azure Blob Storage for moorage."""

__version__ = "0.1.0"
