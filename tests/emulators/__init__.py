"""Stores for tests, on this machine: emulators, and a proxy that stands before them and breaks things."""
