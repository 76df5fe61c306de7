"""How sessions are to use threads and memory, and what runs before them."""

from __future__ import annotations

import json
import logging
from pathlib import Path

from attrs import frozen

from moorage.backend import LoadContext, Settings, available_cores, threads_for_each
from moorage.errors import ConfigError, Fault

logger = logging.getLogger(__name__)

INIT_OPS_FILE = "TF_INIT_OPS_FILE"
_ONLY_VERSION = 2


@frozen
class Threads:
    """How a model's sessions use threads."""

    inside: int
    """Threads for the inside of one operator."""
    between: int
    """Threads that run operators of one request side by side; 0: the instance's own thread runs them one by one."""
    own_pool: bool
    """Whether each session has its own threads for `between`; else they are those of the process, one for each core."""


@frozen
class Memory:
    """How sessions use a GPU's memory, and what they do with operators that a GPU lacks."""

    fraction: float
    """The part of the GPU's memory to take at once; 0: what is needed, when it is needed."""
    soft_placement: bool
    """Whether operators that a GPU lacks run on the CPU."""


def threads(context: LoadContext) -> Threads:
    """The threads that the configuration asks for; between operators, the instance's own where it asks for none."""
    settings = Settings.of(context)
    inside = settings.number("TF_NUM_INTRA_THREADS", 0)
    between = settings.number("TF_NUM_INTER_THREADS", 0, least=None)
    own_pool = settings.flag("TF_USE_PER_SESSION_THREADS", between > 1)
    if between <= 1:
        between = available_cores() if own_pool else 0
    return Threads(inside or threads_for_each(context), between, own_pool)


def memory(context: LoadContext) -> Memory:
    """What the command line says about GPUs."""
    server = Settings.of(context).of_server()
    return Memory(server.fraction("gpu-memory-fraction"), server.flag("allow-soft-placement", True))


def share_count(context: LoadContext) -> int | None:
    """How many instances may use one session; None if nobody says."""
    return Settings.of(context).number("MAX_SESSION_SHARE_COUNT", 0, least=1) or None


def check_version(context: LoadContext) -> None:
    """Warn about `version=1` on the command line: there is but one TensorFlow in a process, and it is version 2."""
    wanted = Settings.of(context).of_server().number("version", _ONLY_VERSION, least=None)
    if wanted != _ONLY_VERSION:
        logger.warning("--backend-config=tensorflow,version=%s has no effect: TensorFlow 2 reads the models of 1, too", wanted)


def init_ops(context: LoadContext) -> tuple[str, ...]:
    """The operations to run once when a session is made, from the file that `TF_INIT_OPS_FILE` names.

    It lies in the version's folder or else in the model's. Raises ConfigError.
    """
    settings = Settings.of(context)
    name = settings.text(INIT_OPS_FILE)
    if not name:
        return ()
    candidates = [folder / name for folder in (context.version_path, context.model_path)]
    path = next((path for path in candidates if path.is_file() and _is_inside(path, context.model_path)), None)
    if path is None:
        advice = f"put it into {context.version_path} or {context.model_path}"
        raise settings.fault(INIT_OPS_FILE, f"there is no file '{name}'", advice)
    try:
        found = json.loads(path.read_bytes())["init_ops"]
    except (ValueError, KeyError, TypeError):
        found = None
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        fault = Fault("it names no operations", file=str(path), advice='write {"init_ops": ["init"]}')
        raise ConfigError([fault], context.model_name)
    return tuple(found)


def _is_inside(path: Path, folder: Path) -> bool:
    return path.resolve().is_relative_to(folder.resolve())
