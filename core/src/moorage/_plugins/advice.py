"""What to install for a backend, platform or storage scheme that no plugin offers here."""

from __future__ import annotations

from typing import Final

from attrs import frozen

from moorage.config.platforms import KNOWN


@frozen
class FirstParty:
    """A plugin that belongs to moorage but is installed separately; `filenames` are what its models are called.

    One that is `planned` cannot be installed yet.
    """

    extra: str
    distribution: str
    backends: tuple[str, ...] = ()
    schemes: tuple[str, ...] = ()
    filenames: tuple[str, ...] = ()
    planned: bool = False

    @property
    def install(self) -> str:
        return f'pip install "moorage[{self.extra}]"'

    @property
    def advice(self) -> str:
        """What to tell someone who needs it."""
        if self.planned:
            return f"moorage has no plugin for it yet ({self.distribution} is planned)"
        return f"install its plugin with {self.install}"


FIRST_PARTY: Final = (
    FirstParty("onnx", "moorage-onnx", backends=("onnxruntime",), filenames=("model.onnx",)),
    FirstParty("python", "moorage-python", backends=("python",), filenames=("model.py",)),
    FirstParty("torchscript", "moorage-torchscript", backends=("pytorch",), filenames=("model.pt", "model.pt2")),
    FirstParty("tensorflow", "moorage-tensorflow", backends=("tensorflow",), filenames=("model.savedmodel", "model.graphdef")),
    FirstParty("openvino", "moorage-openvino", backends=("openvino",), filenames=("model.xml",)),
    FirstParty("tensorrt", "moorage-tensorrt", backends=("tensorrt",), filenames=("model.plan",)),
    FirstParty("s3", "moorage-s3", schemes=("s3",)),
    FirstParty("gcs", "moorage-gcs", schemes=("gs", "gcs")),
    FirstParty("azure", "moorage-azure", schemes=("as", "az", "abfs", "abfss")),
)


def provider(kind: str, name: str) -> FirstParty | None:
    """The first-party plugin that brings the backend, platform or storage scheme (`kind`) of this name, or None."""
    if kind == "platform":
        kind, name = "backend", KNOWN.get(name, "")
    for plugin in FIRST_PARTY:
        if name in {"backend": plugin.backends, "storage": plugin.schemes}.get(kind, ()):
            return plugin
    return None
