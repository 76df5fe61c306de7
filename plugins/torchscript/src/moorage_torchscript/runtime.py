"""PyTorch itself: imported when the first model needs it, and the settings that a process has but once."""

from __future__ import annotations

import logging
import os
import threading
import warnings
from typing import Any

from moorage.errors import PluginError

INSTALL = "`pip install torch`, a build for CUDA on a machine with an NVIDIA GPU"

log = logging.getLogger(__name__)


def import_torch(model: str) -> Any:
    """The module `torch`. Raises PluginError that says what to install."""
    try:
        import torch  # noqa: PLC0415 (not before a model needs it)
    except ImportError as error:
        raise PluginError(
            f"model '{model}': the backend 'pytorch' needs PyTorch, which cannot be imported ({error}): {INSTALL}"
        ) from error
    return torch


class ProcessSettings:
    """What can be set only once in a process, and belongs to no model."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._prepared = False
        self._inter_op_threads = 0

    def prepare(self, torch: Any) -> None:
        """Before the first model: compiled programs check their inputs; PyTorch's note on read-only arrays is spent unseen."""
        with self._lock:
            if self._prepared:
                return
            os.environ.setdefault("AOTI_RUNTIME_CHECK_INPUTS", "1")
            spend_note_on_read_only_arrays(torch)
            self._prepared = True

    def use_inter_op_threads(self, torch: Any, count: int, model: str) -> None:
        """The first number that a model asks for counts; later ones that differ are logged, as nothing can be done for them."""
        with self._lock:
            if count in (0, self._inter_op_threads):
                return
            if self._inter_op_threads == 0:
                self._inter_op_threads = _set_inter_op_threads(torch, count)
        if count != self._inter_op_threads:
            log.warning(
                "model '%s': INTER_OP_THREAD_COUNT %d is not used: the process has one number of these threads, and it is %d",
                model,
                count,
                self._inter_op_threads,
            )


def _set_inter_op_threads(torch: Any, count: int) -> int:
    """Set the number, if nothing has used these threads yet; the number that counts then."""
    try:
        torch.set_num_interop_threads(count)
    except RuntimeError:
        return int(torch.get_num_interop_threads())
    return count


def spend_note_on_read_only_arrays(torch: Any) -> None:
    """Let PyTorch give its note that arrays are not writable. It gives it once in a process.

    Requests are read-only, and the models that would write into them get copies.
    """
    import numpy as np  # noqa: PLC0415 (needed once)

    array = np.zeros(1, np.float32)
    array.flags.writeable = False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.from_numpy(array)
