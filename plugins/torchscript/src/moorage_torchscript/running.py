"""How the models of this plugin run: what is set for a thread, and what around each run."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from moorage_torchscript.options import Options


class Running:
    """The settings of a model on a device.

    Some of them are the thread's (`enter_thread`), some the process's (`before`): as in Triton, two models that want these
    differently and run at the same time can get each other's.
    """

    def __init__(self, torch: Any, options: Options, device: Any) -> None:
        self.torch = torch
        self.device = device
        self._options = options
        self.guard: Callable[[], AbstractContextManager[object]] = (
            torch.inference_mode if options.inference_mode else torch.no_grad
        )
        self.before = _together(self._switches())
        on_gpu = device.type == "cuda"
        self.after: Callable[[], None] | None = torch.cuda.empty_cache if on_gpu and options.cache_cleaning else None

    def enter_thread(self) -> None:
        """Set what PyTorch keeps for each thread; called on the thread that will run the model."""
        torch = self.torch
        torch.set_num_threads(self._options.intra_op_threads)
        torch._C._set_graph_executor_optimize(self._options.optimized_execution)
        if self.device.type == "cuda":
            torch.cuda.set_device(self.device)
            torch.cuda.synchronize(self.device)  # the weights must be there before another stream reads them
            torch.cuda.set_stream(torch.cuda.Stream(self.device))

    def _switches(self) -> list[tuple[Callable[[bool], object], bool]]:
        native, options = self.torch._C, self._options
        switches: list[tuple[Callable[[bool], object], bool]] = []
        if options.jit_profiling is not None:
            switches.append((native._jit_set_profiling_mode, options.jit_profiling))
        if options.jit_executor is not None:
            switches.append((native._jit_set_profiling_executor, options.jit_executor))
        if options.tensor_fuser is not None:
            switches.append((native._jit_set_texpr_fuser_enabled, options.tensor_fuser))
        if self.device.type == "cuda":
            switches.append((native._set_cudnn_enabled, options.cudnn))
        return switches


def _together(switches: list[tuple[Callable[[bool], object], bool]]) -> Callable[[], None] | None:
    if not switches:
        return None

    def switch_all() -> None:
        for switch, value in switches:
            switch(value)

    return switch_all
