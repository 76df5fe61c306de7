"""Lays out models in a folder, as a model repository wants them."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Mapping
from os import PathLike
from pathlib import Path

from moorage.config import to_text
from moorage.config.schema import ModelConfig

Content = str | bytes | PathLike[str]
"""A file's content: text, bytes, or the path of a file or folder to copy."""


class RepositoryBuilder:
    """A model repository in a folder, which is made if need be. `path` is what a server is given."""

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = Path(path)
        self.path.mkdir(parents=True, exist_ok=True)

    def add(self, name: str, files: Mapping[str, Content], *, config: str | ModelConfig = "") -> Path:
        """Add a model, or files to one; its folder.

        `files` maps paths below the model's folder ("1/model.onnx", "labels.txt") to contents; a path that ends with "/" is an
        empty folder. `config` is the text of config.pbtxt, which is left out if empty. Text may be
        indented as the code around it.
        """
        folder = self.path / name
        folder.mkdir(exist_ok=True)
        text = to_text(config) if isinstance(config, ModelConfig) else config
        for place, content in {**files, **({"config.pbtxt": text} if text else {})}.items():
            _put(folder / place, content, empty_folder=place.endswith("/"))
        return folder

    def python(self, name: str, source: str, *, config: str | ModelConfig = "", version: int = 1) -> Path:
        """Add a Python model from the source of its model.py; its folder. Needs `moorage-python` to be served."""
        return self.add(name, {f"{version}/model.py": source}, config=config)

    def onnx(self, name: str, model: bytes | PathLike[str], *, config: str | ModelConfig = "", version: int = 1) -> Path:
        """Add an ONNX model, its bytes or its file; its folder. Needs `moorage-onnx` to be served."""
        return self.add(name, {f"{version}/model.onnx": model}, config=config)

    def remove(self, name: str) -> None:
        """Remove a model's folder."""
        shutil.rmtree(self.path / name)


def _put(target: Path, content: Content, *, empty_folder: bool) -> None:
    if empty_folder:
        target.mkdir(parents=True, exist_ok=True)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, str):
        target.write_text(textwrap.dedent(content), encoding="utf-8")
    elif isinstance(content, bytes):
        target.write_bytes(content)
    elif Path(content).is_dir():
        shutil.copytree(content, target, dirs_exist_ok=True)
    else:
        shutil.copyfile(content, target)
