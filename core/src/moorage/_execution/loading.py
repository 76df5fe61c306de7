"""From a version's files to a servable: complete the configuration, load the files, start the instances."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Final

from attrs import evolve, field, frozen

from moorage._execution import completion
from moorage._execution.crew import Crew
from moorage._execution.devices import compute_capability
from moorage._execution.ensemble import Ensemble, load_ensemble
from moorage._execution.labels import read_labels
from moorage._execution.load_faults import explained
from moorage._execution.local import LocalFiles, localised
from moorage._execution.model_files import files_by_device
from moorage._execution.placement import placements, posts
from moorage._execution.priority_queue import PriorityQueue
from moorage._execution.queues import BatchQueue, FifoQueue, JobQueue
from moorage._execution.renewal import renewed
from moorage._execution.servable import Servable
from moorage._execution.warmup import samples
from moorage._lifecycle.serving import ServingMap
from moorage._plugins import Registry
from moorage._repository.spec import VersionSpec
from moorage._storage import Copies
from moorage.backend import Backend, LoadContext, LoadedModel
from moorage.config.parsed import ParsedConfig
from moorage.config.schema import DynamicBatching, Ensembling, ModelConfig, QueuePolicy, SequenceBatching
from moorage.errors import ConfigError, Fault, ModelError, MoorageError, NotFound, Unsupported, described

DEFAULT_MAX_BATCH_SIZE: Final = "default-max-batch-size"


@frozen
class LoadSettings:
    """What the command line says about loading. `backend_config` maps a backend ("" for all) to its settings."""

    auto_complete: bool = True
    default_max_batch_size: int = 4
    backend_config: Mapping[str, Mapping[str, str]] = field(factory=dict)
    gpus: Sequence[int] = ()

    def default_max_batch_size_of(self, backend: str) -> int:
        """What the settings of this backend say, else those of all."""
        text = self.backend_config.get(backend, {}).get(DEFAULT_MAX_BATCH_SIZE)
        return self.default_max_batch_size if text is None else int(text)


class Loader:
    """Loads versions. Called on the threads of the load pool, several at once.

    `serving` is where ensembles find the models of their steps; `copies` brings the files of remote repositories.
    """

    def __init__(
        self,
        registry: Registry,
        settings: LoadSettings,
        serving: ServingMap[Servable] | None = None,
        copies: Copies | None = None,
    ) -> None:
        self._registry = registry
        self._copies = copies if copies is not None else Copies()
        self._settings = settings
        self._serving: ServingMap[Servable] = serving if serving is not None else ServingMap()
        self._backends: dict[str, Backend] = {}
        self._lock = threading.Lock()

    def __call__(self, spec: VersionSpec) -> Servable:
        """Load a version. Raises a MoorageError that names the model and says what to change."""
        files = localised(spec, self._copies)
        try:
            return self._load(files.of(spec), files)
        except MoorageError as error:
            told = explained(error, spec.parsed, files.of(spec).files)
            files.close()
            if told is error:
                raise
            raise told from error
        except BaseException:
            files.close()
            raise

    def close(self) -> None:
        """Close the backends; every servable must be closed before."""
        for backend in self._backends.values():
            backend.close()

    @staticmethod
    def relieve(renewed: Servable) -> None:
        """A servable that `renew` has made takes over."""
        renewed.relieve()

    def _load(self, spec: VersionSpec, files: LocalFiles) -> Servable:
        parsed, config = self._prepared(spec)
        _refuse_unsupported(config)
        if isinstance(config.scheduling, Ensembling):
            ensemble = load_ensemble(config, spec, read_labels(config, files.folder), self._serving)
            files.close()
            return ensemble
        loaded = self._load_files(config, spec, files)
        try:
            return self._serve(loaded, parsed, spec, files)
        except BaseException:
            loaded.close()
            raise

    def _prepared(self, spec: VersionSpec) -> tuple[ParsedConfig, ModelConfig]:
        """The configuration as written, with what plugins fill in, and as the backend is given it."""
        settings, parsed = self._settings, spec.parsed
        if settings.auto_complete:
            parsed = completion.from_plugins(parsed, spec.files, self._registry.completers)
        platforms = self._registry.platforms
        return parsed, completion.prepare(parsed, settings.gpus, platforms, auto_complete=settings.auto_complete)

    def _load_files(self, config: ModelConfig, spec: VersionSpec, files: LocalFiles) -> LoadedModel:
        places = placements(config)
        backend = self._backend(config)
        default = config.default_model_filename or backend.default_model_filename
        filenames = files_by_device(
            config, spec.files, places, default=default, registry=self._registry, capability=compute_capability
        )
        first = (places[0].kind, places[0].device_id) if places else None
        context = LoadContext(
            model_name=config.name,
            version=spec.version,
            config=config,
            version_path=files.path,
            model_path=files.folder,
            model_filename=filenames[first] if first is not None else default,
            filenames=filenames,
            placements=places,
            backend_config=self._backend_config(config.backend),
        )
        try:
            return backend.load(context)
        except MoorageError:
            raise
        except Exception as error:
            raise ModelError(f"model '{config.name}' version {spec.version}: {described(error)}") from error

    def _serve(self, loaded: LoadedModel, parsed: ParsedConfig, spec: VersionSpec, files: LocalFiles) -> Servable:
        signature, settings = loaded.signature(), self._settings
        if signature is not None and settings.auto_complete:
            size = settings.default_max_batch_size_of(parsed.config.backend)
            parsed = completion.from_signature(parsed, signature, size)
        config = completion.finish(parsed, signature, settings.gpus, self._registry.platforms)
        labels = read_labels(config, files.folder)
        queue = queue_for(config)
        crew = Crew(loaded, queue, f"model '{config.name}' version {spec.version}", files)
        members = crew.hire(posts(config), config, samples(config, files.folder), waiting=False)
        return Servable(
            config,
            spec.version,
            shown=completion.shown(config, signature),
            crew=crew,
            members=members,
            labels=labels,
            recorders=[queue.recorder] if isinstance(queue, PriorityQueue) else [],
        )

    def renew(self, old: Servable, spec: VersionSpec) -> Servable:
        """A servable for a version of which only the instance groups are others than those of `old`.

        Instances that both have go on; the new ones take requests from `Servable.relieve` on. Raises as a load does.
        """
        if isinstance(old, Ensemble):
            return self(spec)
        _, config = self._prepared(old.crew.files.of(spec))
        return renewed(old, config.instance_group)

    def _backend(self, config: ModelConfig) -> Backend:
        name = config.backend
        with self._lock:
            found = self._backends.get(name)
            if found is None:
                try:
                    found = self._backends[name] = self._registry.backend(name)()
                except NotFound as error:
                    raise ConfigError([Fault(str(error), field="backend")], config.name) from error
            return found

    def _backend_config(self, name: str) -> Mapping[str, str]:
        settings = self._settings.backend_config
        return {**settings.get("", {}), **settings.get(name, {})}


def _refuse_unsupported(config: ModelConfig) -> None:
    if isinstance(config.scheduling, SequenceBatching):
        raise Unsupported(f"model '{config.name}': sequence_batching is not supported yet")


def queue_for(config: ModelConfig) -> JobQueue:
    """The queue that does what the configuration asks of the scheduler."""
    scheduling = config.scheduling
    if not isinstance(scheduling, DynamicBatching):
        return FifoQueue()
    if not _is_plain(scheduling, config.max_batch_size):
        return PriorityQueue(config, scheduling)
    if config.batches:
        return BatchQueue(config.max_batch_size, delay_us=scheduling.max_queue_delay_microseconds)
    return FifoQueue()


def _is_plain(batching: DynamicBatching, most: int) -> bool:
    """Whether a simple queue does all that is asked for: batches as large as possible, at most a delay."""
    usual = DynamicBatching(batching.preferred_batch_size, batching.max_queue_delay_microseconds)
    sizes = set(batching.preferred_batch_size)
    return sizes <= {most} and batching in (usual, evolve(usual, default_queue_policy=QueuePolicy()))
