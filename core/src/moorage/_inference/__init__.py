"""InferenceService: the one room that all protocols share on the way to a model."""

from moorage._inference.answer import OneResponse
from moorage._inference.service import InferenceService

__all__ = ["InferenceService", "OneResponse"]
