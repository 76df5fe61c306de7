"""Packages build, install by themselves, and the README's commands work from a fresh clone."""
