"""What a backend must offer: load a version's files, and run requests on instances of what it loaded."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np
from attrs import field, frozen

from moorage.config.schema import InstanceKind, ModelConfig
from moorage.errors import MoorageError
from moorage.types import DataType, InferResponse, Job


@frozen
class VersionFiles:
    """The files of a model, as discovery and completion see them.

    `names` are the paths below the version folder ("model.onnx", "model.savedmodel/saved_model.pb"), dot files left out.
    `path` is the version's folder on this machine, or None while the files are still remote (discovery works on names alone).
    """

    model_name: str
    names: frozenset[str]
    path: Path | None = None
    model_path: Path | None = None
    """The model's folder on this machine, which holds `config.pbtxt`, labels and the version folders."""
    version: int = 0

    def top_level(self) -> frozenset[str]:
        """Names of the files and folders directly in the version folder."""
        return frozenset(name.partition("/")[0] for name in self.names)


@frozen
class ModelMatch:
    """A backend that reads these files. `platform` may be empty (Python models have none)."""

    backend: str
    platform: str
    default_model_filename: str


class TensorSpec(NamedTuple):
    """An input or output as the model file itself declares it, batch dimension included; -1 is any size.

    `shape` None means that the rank is unknown; `datatype` None that the file does not say.
    """

    name: str
    datatype: DataType | None
    shape: tuple[int, ...] | None


@frozen
class Signature:
    """The inputs and outputs that a model file declares."""

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    max_batch_size: int | None = None
    """The largest batch that the file allows, 0 if it does not call its first dimensions a batch. None: it does not say; first
    dimensions of any size are then taken for the batch."""


@frozen
class Placement:
    """Where one instance runs. `device_id` is the GPU's number, 0 on the CPU."""

    name: str
    kind: InstanceKind
    device_id: int = 0
    host_policy: str = ""
    secondary_devices: tuple[tuple[str, int], ...] = ()
    profiles: tuple[str, ...] = ()
    """The optimization profiles that `instance_group { profile: ... }` names."""


@frozen
class LoadContext:
    """All that a backend is told about the version it is to load. Paths are on this machine."""

    model_name: str
    version: int
    config: ModelConfig
    version_path: Path
    model_path: Path
    model_filename: str
    """Path below `version_path` of the file or folder to load, on the first of the placements."""
    placements: tuple[Placement, ...] = ()
    """Where instances will be asked for; a backend may prepare for them."""
    backend_config: Mapping[str, str] = field(factory=dict)
    """`--backend-config` settings for this backend, those for all backends included."""
    filenames: Mapping[tuple[InstanceKind, int], str] = field(factory=dict)
    """The same for each device, by its kind and number: `cc_model_filenames` and `select_model_file` may give each its own."""

    @property
    def model_file(self) -> Path:
        return self.version_path / self.model_filename

    def file_for(self, placement: Placement) -> Path:
        """The file or folder to load at this place."""
        return self.version_path / self.filenames.get((placement.kind, placement.device_id), self.model_filename)


class Instance(ABC):
    """One copy of a model that runs requests, on one thread at a time (its own, from the first call to `close`)."""

    @abstractmethod
    def execute(self, jobs: Sequence[Job]) -> Sequence[InferResponse | MoorageError | None]:
        """Run some requests; the answer to each, in order.

        None at a place: this instance answers that job through its sink itself, now or later, from any thread (decoupled
        models do). An exception fails all jobs of the call.
        """

    def close(self) -> None:
        """Give back what the instance holds. Called once, after its last `execute`."""
        return


class BatchInstance(ABC):
    """One copy of a model that maps arrays to arrays. The core stacks the requests of a batch and splits the result."""

    @abstractmethod
    def run(self, inputs: Mapping[str, np.ndarray], outputs: Sequence[str]) -> Mapping[str, np.ndarray]:
        """Run a batch.

        `inputs` hold every input that the requests gave, in the model's own shapes (batch dimension first if the model
        batches, reshapes applied), BYTES as object arrays of `bytes`, BF16 as `ml_dtypes.bfloat16`. They may be read-only.
        `outputs` are the names wanted, a subset of the declared ones. The arrays returned must not be reused by a later run.
        """

    def close(self) -> None:
        """Give back what the instance holds. Called once, after its last `run`."""
        return


class LoadedModel(ABC):
    """A version's files, read and understood; makes instances."""

    def signature(self) -> Signature | None:
        """What the file itself declares, or None if it declares nothing. Used to complete and check the configuration."""
        return None

    @abstractmethod
    def instance(self, placement: Placement) -> Instance | BatchInstance:
        """A new instance at this place. Called once for each, on a load thread.

        Raises an error that says why if it cannot be.
        """

    def close(self) -> None:
        """Give back what is shared by the instances. Called once, after they are closed."""
        return


class Backend(ABC):
    """A framework. One object for the life of the server, made at the first model that needs it."""

    name: ClassVar[str]
    """What `backend:` says in a configuration."""
    platforms: ClassVar[Sequence[str]] = ()
    """What `platform:` may say for this backend."""
    default_model_filename: ClassVar[str] = ""
    """The file in the version folder that is loaded when the configuration names none."""
    install_hint: ClassVar[str] = ""
    """What to install when the framework is missing, e.g. `pip install "moorage[onnx]"`."""

    @abstractmethod
    def load(self, context: LoadContext) -> LoadedModel:
        """Read a version's files. Slow, on a load thread; several loads may run at once.

        Import the framework here, not before.
        """

    def close(self) -> None:
        """The server ends; all models are closed."""
        return
