"""The fixtures of `fakes/simulated_gpus.py`."""

from __future__ import annotations

from simulated_gpus import context, instance, load, simulation

__all__ = ["context", "instance", "load", "simulation"]
