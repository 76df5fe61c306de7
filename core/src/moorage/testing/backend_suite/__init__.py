"""The parts of `moorage.testing.BackendTests`."""
