"""What Triton was recorded to do, compared with what moorage does."""
