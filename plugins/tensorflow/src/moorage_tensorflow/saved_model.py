"""SavedModels: which graph and signature are meant, and how they get into a session."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from google.protobuf import text_format

from moorage.backend import LoadContext, Settings
from moorage.config.schema import ModelConfig
from moorage.errors import ModelError, NotFound, Unsupported
from moorage_tensorflow.runtime import Runtime
from moorage_tensorflow.tensors import Built, Endpoint, Endpoints, datatype, sizes

logger = logging.getLogger(__name__)

GRAPH_TAG, SIGNATURE = "TF_GRAPH_TAG", "TF_SIGNATURE_DEF"
_DEFAULT_TAG, _DEFAULT_SIGNATURE = "serve", "serving_default"
_INIT_OP, _TRAIN_OP = "__saved_model_init_op", "__saved_model_train_op"
_INIT_COLLECTIONS = ("saved_model_main_op", "legacy_init_op")
_ASSETS = "saved_model_assets"


class SavedModel:
    """A SavedModel's graph for serving. Its files are read while a session is made, and never after."""

    def __init__(self, runtime: Runtime, context: LoadContext, path: Path) -> None:
        """Raises a MoorageError if the folder holds no SavedModel, or none with the tag and signature wanted."""
        self.path = path
        self._runtime = runtime
        self._context = context
        self._settings = Settings.of(context)
        self._meta_graph = self._read()
        self._endpoints = self._read_endpoints(self._meta_graph)

    def build(self) -> Built:
        """Bring the graph into TensorFlow's default graph."""
        meta_graph = self._meta_graph if self._meta_graph is not None else self._read()
        self._meta_graph = None
        saver = self._runtime.v1.train.import_meta_graph(meta_graph)
        start = partial(self._start, saver, _init_op(meta_graph), self._asset_paths(meta_graph))
        return Built(self._endpoints, meta_graph.graph_def, start)

    def _start(self, saver: Any, init_op: str, assets: dict[str, str], session: Any) -> None:
        """Restore the variables, fill the tables."""
        if saver is not None:
            saver.restore(session, str(self.path / "variables" / "variables"))
        if init_op:
            session.run(init_op, feed_dict=assets)

    def _read(self) -> Any:
        saved = self._parsed()
        tag = self._settings.text(GRAPH_TAG, _DEFAULT_TAG)
        tags = {word.strip() for word in tag.split(",")}
        for meta_graph in saved.meta_graphs:
            if set(meta_graph.meta_info_def.tags) == tags:
                return meta_graph
        there = "; ".join(",".join(graph.meta_info_def.tags) or "(none)" for graph in saved.meta_graphs)
        if not there:
            raise ModelError(f"{self._where}: {self.path} holds no graph; write it again with tf.saved_model.save")
        raise self._settings.fault(GRAPH_TAG, f"{self.path} has no graph with the tag '{tag}'", f"it has: {there}")

    @property
    def _where(self) -> str:
        return f"model '{self._context.model_name}' version {self._context.version}"

    def _parsed(self) -> Any:
        saved = self._runtime.saved_model.SavedModel()
        binary, text = self.path / "saved_model.pb", self.path / "saved_model.pbtxt"
        if binary.is_file():
            saved.ParseFromString(binary.read_bytes())
        elif text.is_file():
            text_format.Parse(text.read_text(encoding="utf-8"), saved)
        else:
            raise NotFound(f"{self._where}: {self.path} holds no saved_model.pb{_misplaced(self.path)}")
        return saved

    def _read_endpoints(self, meta_graph: Any) -> Endpoints:
        signature = self._signature(meta_graph.signature_def)
        return Endpoints(self._side("input", signature.inputs), self._side("output", signature.outputs))

    def _signature(self, signatures: Mapping[str, Any]) -> Any:
        """The signature wanted, or "serving_default", or the only one that has the tensors of the configuration."""
        wanted = self._settings.text(SIGNATURE)
        usable = sorted(set(signatures) - {_INIT_OP, _TRAIN_OP})
        name = wanted or _DEFAULT_SIGNATURE
        if name in signatures:
            return signatures[name]
        fitting = [] if wanted else [other for other in usable if _fits(signatures[other], self._context.config)]
        if len(fitting) == 1:
            logger.warning("%s: there is no signature '%s'; using '%s'", self._where, name, fitting[0])
            return signatures[fitting[0]]
        there = f"it has: {', '.join(usable)}" if usable else "it has none: export it with signatures=..."
        raise self._settings.fault(SIGNATURE, f"{self.path} has no signature '{name}'", there)

    def _side(self, role: str, tensors: Mapping[str, Any]) -> tuple[Endpoint, ...]:
        return tuple(self._endpoint(role, name, tensors[name]) for name in sorted(tensors))

    def _endpoint(self, role: str, name: str, info: Any) -> Endpoint:
        if info.WhichOneof("encoding") != "name":
            raise Unsupported(
                f"model '{self._context.model_name}': {role} '{name}' is a sparse or composite tensor, which requests cannot "
                "carry; export a signature with dense tensors"
            )
        tf = self._runtime.tf
        kind = datatype(tf.as_dtype(info.dtype), self._context.model_name, role, name)
        return Endpoint.of(name, kind, sizes(tf.TensorShape(info.tensor_shape)), info.name)

    def _asset_paths(self, meta_graph: Any) -> dict[str, str]:
        """The path of each asset, by the tensor that wants it."""
        assets = list(meta_graph.asset_file_def)
        if not assets and _ASSETS in meta_graph.collection_def:
            for packed in meta_graph.collection_def[_ASSETS].any_list.value:
                asset = self._runtime.meta_graph.AssetFileDef()
                packed.Unpack(asset)
                assets.append(asset)
        return {asset.tensor_info.name: str(self.path / "assets" / asset.filename) for asset in assets}


def _init_op(meta_graph: Any) -> str:
    """The name of the operation that fills tables and the like; empty if there is none."""
    if _INIT_OP in meta_graph.signature_def:
        return str(meta_graph.signature_def[_INIT_OP].outputs[_INIT_OP].name)
    for key in _INIT_COLLECTIONS:
        if key in meta_graph.collection_def:
            return str(meta_graph.collection_def[key].node_list.value[0])
    return ""


def _fits(signature: Any, config: ModelConfig) -> bool:
    """Whether a signature has all tensors that the configuration names."""
    inputs, outputs = {one.name for one in config.input}, {one.name for one in config.output}
    return inputs <= set(signature.inputs) and outputs <= set(signature.outputs)


def _misplaced(folder: Path) -> str:
    """Where it lies instead, if it is one folder too deep."""
    found = next(folder.glob("*/saved_model.pb*"), None) if folder.is_dir() else None
    return f"; it is in {found.parent}: move what is there up" if found else "; write the model with tf.saved_model.save"
