"""PyTorch's TorchScript."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from moorage_bench.frameworks.framework import ADD_SUB, LAYERS, WIDTH, Arrays, Call, weights


def write(kind: str, folder: Path) -> None:
    """Write `model.pt`."""
    import torch  # noqa: PLC0415 - where a framework is missing, the others are measured

    class AddSub(torch.nn.Module):
        def forward(self, a: Any, b: Any) -> Any:
            return a + b, a - b

    class Busy(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.from_numpy(weights()), requires_grad=False)

        def forward(self, a: Any) -> Any:
            for _ in range(LAYERS):
                a = torch.matmul(a, self.weight)
            return a

    module, number = (AddSub(), 2) if kind == ADD_SUB else (Busy(), 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        trace: Any = torch.jit.trace
        traced = trace(module.eval(), tuple(torch.zeros(2, WIDTH) for _ in range(number)))
        torch.jit.save(traced, str(folder / "model.pt"))


def bare(folder: Path) -> Call:
    """The module, from arrays to arrays, in inference mode."""
    import torch  # noqa: PLC0415

    torch.set_num_threads(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        load: Any = torch.jit.load
        module = load(str(folder / "model.pt"))
    module.eval()

    @torch.inference_mode()
    def call(inputs: Arrays) -> object:
        results = module(*map(torch.from_numpy, inputs.values()))
        return [one.numpy() for one in (results if isinstance(results, tuple) else (results,))]

    typed: Call = call
    return typed
