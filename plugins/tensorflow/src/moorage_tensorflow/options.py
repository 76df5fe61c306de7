"""Settings out of a model's parameters and the server's `--backend-config`."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping
from pathlib import Path

from attrs import frozen

from moorage.backend import LoadContext
from moorage.config.schema import InstanceKind
from moorage.errors import ConfigError, Fault

logger = logging.getLogger(__name__)

INIT_OPS_FILE = "TF_INIT_OPS_FILE"
_WORDS = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}
_SERVER = "--backend-config"
_ONLY_VERSION = 2


@frozen
class Threads:
    """How a model's sessions use threads."""

    inside: int
    """Threads for the inside of one operator."""
    between: int
    """Threads that run operators of one request side by side; 0: the instance's own thread runs them one by one."""
    own_pool: bool
    """Whether each session has its own threads for `between`, or all sessions of the process share the first one's."""


@frozen
class Memory:
    """How sessions use a GPU's memory, and what they do with operators that a GPU lacks."""

    fraction: float
    """The part of the GPU's memory to take at once; 0: what is needed, when it is needed."""
    soft_placement: bool
    """Whether operators that a GPU lacks run on the CPU."""


def settings_of(context: LoadContext) -> dict[str, str]:
    """The model's parameters over the server's settings for this backend."""
    own = {name: value.string_value for name, value in context.config.parameters.items()}
    return {**context.backend_config, **own}


def threads(context: LoadContext) -> Threads:
    """The threads that the configuration asks for; the instance's own where it asks for none."""
    settings = settings_of(context)
    inside = number(settings, "TF_NUM_INTRA_THREADS", 0)
    if inside < 0:
        raise _wrong("TF_NUM_INTRA_THREADS", str(inside), "0 or more", "parameters")
    between = number(settings, "TF_NUM_INTER_THREADS", 0)
    own_pool = flag(settings, "TF_USE_PER_SESSION_THREADS", between > 1)
    if between <= 1:
        between = _cores() if own_pool else 0
    return Threads(inside or default_threads(context), between, own_pool)


def default_threads(context: LoadContext) -> int:
    """Threads inside one operator when nobody says: the cores of this process, divided among the CPU instances."""
    on_cpu = sum(placement.kind is not InstanceKind.KIND_GPU for placement in context.placements)
    return max(1, _cores() // max(1, on_cpu))


def _cores() -> int:
    """The cores that this process may use; where the system does not tell (macOS, Windows), those of the machine."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def memory(context: LoadContext) -> Memory:
    """What the command line says about GPUs."""
    text = context.backend_config.get("gpu-memory-fraction", "").strip()
    soft = flag(context.backend_config, "allow-soft-placement", True, origin=_SERVER)
    try:
        fraction = float(text or 0)
    except ValueError:
        fraction = -1.0
    if not 0 <= fraction <= 1:
        raise _wrong("gpu-memory-fraction", text, "a number from 0 to 1", _SERVER)
    return Memory(fraction, soft)


def share_count(context: LoadContext) -> int | None:
    """How many instances may use one session; None if nobody says."""
    count = number(settings_of(context), "MAX_SESSION_SHARE_COUNT", 0)
    if "MAX_SESSION_SHARE_COUNT" not in settings_of(context):
        return None
    if count <= 0:
        raise _wrong("MAX_SESSION_SHARE_COUNT", str(count), "1 or more", "parameters")
    return count


def check_version(settings: Mapping[str, str]) -> None:
    """Warn about `version=1` on the command line: there is but one TensorFlow in a process, and it is version 2."""
    wanted = number(settings, "version", _ONLY_VERSION, origin=_SERVER)
    if wanted != _ONLY_VERSION:
        logger.warning("--backend-config=tensorflow,version=%d has no effect: TensorFlow 2 reads the models of 1, too", wanted)


def init_ops(context: LoadContext) -> tuple[str, ...]:
    """The operations to run once when a session is made, from the file that `TF_INIT_OPS_FILE` names.

    It lies in the version's folder or else in the model's.
    """
    name = settings_of(context).get(INIT_OPS_FILE, "").strip()
    if not name:
        return ()
    candidates = [folder / name for folder in (context.version_path, context.model_path)]
    path = next((path for path in candidates if path.is_file() and _is_inside(path, context.model_path)), None)
    if path is None:
        advice = f"put {name} into {context.version_path} or {context.model_path}"
        raise ConfigError([Fault(f"there is no file '{name}'", field=f"parameters.{INIT_OPS_FILE}", advice=advice)])
    try:
        found = json.loads(path.read_bytes())["init_ops"]
    except (ValueError, KeyError, TypeError):
        found = None
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise ConfigError([Fault("it names no operations", file=str(path), advice='write {"init_ops": ["init"]}')])
    return tuple(found)


def _is_inside(path: Path, folder: Path) -> bool:
    return path.resolve().is_relative_to(folder.resolve())


def number(settings: Mapping[str, str], name: str, default: int, *, origin: str = "parameters") -> int:
    """A whole number among the settings. Raises ConfigError that names the setting."""
    text = settings.get(name, "").strip()
    try:
        return int(text) if text else default
    except ValueError:
        raise _wrong(name, text, "a whole number", origin) from None


def flag(settings: Mapping[str, str], name: str, default: bool, *, origin: str = "parameters") -> bool:
    """A switch among the settings. Raises ConfigError that names the setting."""
    text = settings.get(name, "").strip().lower()
    if not text:
        return default
    if text not in _WORDS:
        raise _wrong(name, text, "1 or 0", origin)
    return _WORDS[text]


def _wrong(name: str, text: str, wanted: str, origin: str) -> ConfigError:
    return ConfigError([Fault(f"'{text}' is not {wanted}", field=f"{origin}.{name}", advice=f"write {wanted}")])
