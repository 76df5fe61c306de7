"""The repositories of a server: looks at them, and says what is to be loaded of a model."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from attrs import evolve

from moorage._plugins import Registry
from moorage._repository import config_file, overrides
from moorage._repository.build import build
from moorage._repository.config_file import ConfigSource
from moorage._repository.names import check_name
from moorage._repository.scan import ModelFolder, Repository, RepositorySnapshot, scan
from moorage._repository.spec import ModelSpec
from moorage._repository.storages import open_storage
from moorage._repository.sums import doubt
from moorage._storage import Copies, split
from moorage.control import LoadOptions, ModelId
from moorage.errors import NotFound, RequestError, StorageError
from moorage.storage import InPlaceStorage, Storage

logger = logging.getLogger(__name__)


class Repositories:
    """Reads the model repositories at some URLs. Methods block; they may run on several threads at once.

    `config_name` is the file in a model's `configs` folder that replaces its default configuration. With `auto_complete`, a
    configuration may leave open what a model file declares; without, every model needs a configuration file that is complete.
    `variables` are the values of `${NAME}` in configuration files; None leaves such text alone, which is then a fault.
    `copies` keeps what is read of remote repositories, and has room for the files of load requests.
    """

    def __init__(
        self,
        urls: Sequence[str],
        registry: Registry,
        *,
        namespacing: bool = False,
        config_name: str = "",
        auto_complete: bool = True,
        variables: Mapping[str, str] | None = None,
        copies: Copies | None = None,
    ) -> None:
        """Raises NotFound for a scheme that no storage serves, InvalidArgument for a URL that means nothing."""
        self._registry = registry
        self._namespacing = namespacing
        self._config_name = config_name
        self._auto_complete = auto_complete
        self._variables = variables
        self._copies = copies if copies is not None else Copies()
        self._repositories = _open(urls, registry)

    @property
    def remote(self) -> tuple[str, ...]:
        """Those of them whose files are not on this machine."""
        return tuple(one.url for one in self._repositories if not isinstance(one.storage, InPlaceStorage))

    @property
    def urls(self) -> tuple[str, ...]:
        """The repositories, each once, in the order given."""
        return tuple(repository.url for repository in self._repositories)

    def scan(self) -> RepositorySnapshot:
        """Look at all repositories, with one listing each. Reads no file."""
        return scan(self._repositories, namespacing=self._namespacing)

    def spec(self, snapshot: RepositorySnapshot, model_id: ModelId, options: LoadOptions | None = None) -> ModelSpec:
        """What is to be loaded of a model, as the snapshot shows it and `options` change it. Reads its configuration.

        Raises ConfigError (with all faults that can be seen before the model's files are read), NotFound, RequestError for a
        name or an override that cannot be, StorageError, or the problem that the snapshot found.
        """
        options = options or LoadOptions()
        check_name(model_id.name)
        model = self._staged(model_id, options) if options.files else self._listed(snapshot, model_id)
        if options.unfinished:
            model = evolve(model, folder=model.folder.without(options.unfinished))
        return build(
            model,
            self._source(model, options),
            self._registry,
            auto_complete=self._auto_complete,
            # A client's configuration is not filled in: it could read the server's environment by it.
            variables=self._variables if options.config is None else None,
            chosen=options.versions,
        )

    def doubt(self, snapshot: RepositorySnapshot, model_id: ModelId, version: int) -> str:
        """Why a version is not what its file SHA256SUMS says; empty if it is. Reads every file that is listed there.

        Raises NotFound and StorageError.
        """
        return doubt(self._listed(snapshot, model_id), version, self._copies)

    def close(self) -> None:
        """Nothing is read any more."""
        for storage in {id(one.storage): one.storage for one in self._repositories}.values():
            try:
                storage.close()
            except Exception:
                logger.exception("closing %s failed", type(storage).__name__)

    def _staged(self, model_id: ModelId, options: LoadOptions) -> ModelFolder:
        if options.config is None:
            raise RequestError(f"model '{model_id}': a load with 'file:' parameters needs the parameter 'config' as well")
        return overrides.stage(model_id, options.files, self._copies.scratch)

    def _listed(self, snapshot: RepositorySnapshot, model_id: ModelId) -> ModelFolder:
        model = snapshot.models.get(model_id)
        if model is None:
            raise self._unknown(snapshot, model_id)
        if model.problem is not None:
            raise model.problem.with_traceback(None)
        return model

    def _unknown(self, snapshot: RepositorySnapshot, model_id: ModelId) -> NotFound | StorageError:
        looked = f"model '{model_id}' is in no repository ({', '.join(self.urls) or 'there are none'})"
        if not snapshot.unreadable:
            return NotFound(looked)
        return StorageError(f"{looked} that could be read: {'; '.join(map(str, snapshot.unreadable.values()))}")

    def _source(self, model: ModelFolder, options: LoadOptions) -> ConfigSource | None:
        if options.config is not None:
            return ConfigSource(options.config.encode(), "parameter 'config'", json=True)
        path = config_file.find(model, self._config_name)
        return None if path is None else config_file.read(model, path, self._copies)


def _open(urls: Sequence[str], registry: Registry) -> tuple[Repository, ...]:
    storages: dict[str, Storage] = {}
    opened: dict[str, Repository] = {}
    for location in map(split, urls):
        if location.scheme not in storages:
            storages[location.scheme] = open_storage(location.scheme, registry)
        opened.setdefault(location.url, Repository(location.url, storages[location.scheme]))
    return tuple(opened.values())
