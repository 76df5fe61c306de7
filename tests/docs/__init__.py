"""What the documentation shows is run."""
