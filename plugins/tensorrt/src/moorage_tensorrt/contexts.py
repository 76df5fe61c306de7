"""Execution contexts: one for each optimization profile that an instance uses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import frozen

from moorage.errors import ModelError, RequestError
from moorage_tensorrt.engine import Bounds
from moorage_tensorrt.runtimes import TensorRt

Shapes = Mapping[str, tuple[int, ...]]
"""Of each input its shape; of an input that is a shape itself, its values."""


@frozen(eq=False)
class ProfileContext:
    """An execution context with its profile's number, and the bounds of its inputs."""

    profile: int
    context: Any
    bounds: Mapping[str, Bounds]

    def takes(self, shapes: Shapes) -> bool:
        return all(self.bounds[name].hold(shape) for name, shape in shapes.items() if name in self.bounds)

    def distance(self, shapes: Shapes) -> int:
        return sum(self.bounds[name].distance(shape) for name, shape in shapes.items() if name in self.bounds)

    def trouble(self, shapes: Shapes) -> str:
        """Why the profile does not take these shapes."""
        wrong = (
            f"input '{name}' is {list(shape)}, not within {self.bounds[name]}"
            for name, shape in shapes.items()
            if name in self.bounds and not self.bounds[name].hold(shape)
        )
        return f"profile {self.profile}: {', '.join(wrong)}"


def make_context(tensorrt: TensorRt, model: str, engine: Any, *, strategy: Any, profile: int, stream: int) -> Any:
    """A context that uses a profile. Raises ModelError with TensorRT's own words."""
    tensorrt.log.take()
    context = engine.create_execution_context(strategy)
    if context is None:
        raise ModelError(f"model '{model}': TensorRT cannot make an execution context: {tensorrt.log.take()}")
    if not context.set_optimization_profile_async(profile, stream):
        raise ModelError(f"model '{model}': TensorRT cannot use optimization profile {profile}: {tensorrt.log.take()}")
    return context


def choose(model: str, contexts: Sequence[ProfileContext], shapes: Shapes) -> ProfileContext:
    """The context whose profile is best for these shapes. Raises RequestError saying what the profiles take if none does."""
    if len(contexts) == 1 and contexts[0].takes(shapes):
        return contexts[0]
    fitting = [context for context in contexts if context.takes(shapes)]
    if not fitting:
        troubles = "; ".join(one.trouble(shapes) for one in contexts)
        raise RequestError(f"model '{model}': no optimization profile takes these shapes ({troubles})")
    return min(fitting, key=lambda context: context.distance(shapes))
