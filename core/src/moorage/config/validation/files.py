"""Checks of the files that a configuration names: they must lie in the model's folder, whatever is outside of it."""

from __future__ import annotations

from collections.abc import Iterator

from moorage.config.parsed import ParsedConfig, item_path
from moorage.config.schema import DataFile, ModelConfig, SequenceBatching
from moorage.errors import Fault


def file_faults(parsed: ParsedConfig) -> Iterator[Fault]:
    """Names of files that lead out of the folder in which they are looked for. Looks at the text alone, at no file."""
    config = parsed.config
    for path, name in (*_model_files(config), *_tensor_files(config)):
        if _leads_out(name):
            message = f"the file '{name[:80]}' of model '{config.name}' leads out of the model's folder"
            yield parsed.fault(path, message, "write a path below that folder: without '..', '\\' and a slash in front")


def _leads_out(name: str) -> bool:
    return name.startswith("/") or "\\" in name or "\0" in name or ".." in name.split("/")


def _model_files(config: ModelConfig) -> Iterator[tuple[str, str]]:
    yield "default_model_filename", config.default_model_filename
    for key, name in config.cc_model_filenames.items():
        yield item_path("cc_model_filenames", key), name
    for index, output in enumerate(config.output):
        yield f"output[{index}].label_filename", output.label_filename


def _tensor_files(config: ModelConfig) -> Iterator[tuple[str, str]]:
    for index, warmup in enumerate(config.model_warmup):
        for name, tensor in warmup.inputs.items():
            if isinstance(tensor.data, DataFile):
                yield item_path(f"model_warmup[{index}].inputs", name) + ".input_data_file", tensor.data.path
    states = config.scheduling.state if isinstance(config.scheduling, SequenceBatching) else ()
    for index, state in enumerate(states):
        for number, initial in enumerate(state.initial_state):
            if isinstance(initial.state_data, str):
                yield f"sequence_batching.state[{index}].initial_state[{number}].data_file", initial.state_data
