"""Ensembles: models that are made of other models, whose tensors are passed on from step to step."""

from moorage._execution.ensemble.servable import Ensemble, load_ensemble

__all__ = ["Ensemble", "load_ensemble"]
