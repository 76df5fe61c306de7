"""Programs of torch.export: what they declare, how they are called, and what is refused."""

from __future__ import annotations

import io
import logging
import pickle
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from moorage.backend import Signature, TensorSpec
from moorage.errors import ConfigError, ModelError, RequestError, Unsupported
from moorage.types import DataType
from moorage_torchscript.archive_safety import refuse_objects

MODELS = Path(__file__).parent / "models"
FP32, INT64 = DataType.FP32, DataType.INT64
ROWS = np.arange(6, dtype=np.float32).reshape(2, 3)
BIAS = np.ones((2, 2), np.float32)
Start = Callable[..., Any]


def test_declares_names_types_and_sizes(load: Start) -> None:
    assert load("add_sub.pt2").signature() == Signature(
        tuple(TensorSpec(name, FP32, (-1, 3)) for name in ("LEFT", "RIGHT")),
        tuple(TensorSpec(name, FP32, (-1, 3)) for name in ("TOTAL", "GAP")),
    )
    assert load("blur.pt2").signature().inputs == (TensorSpec("IMAGE", FP32, (-1, 1, -1, -1)),)
    assert load("fixed.pt2").signature().outputs == tuple(TensorSpec(f"OUTPUT__{n}", FP32, (2, 3)) for n in (0, 1))


def test_containers_are_declared_by_their_steps(load: Start) -> None:
    assert load("nested.pt2").signature() == Signature(
        (
            TensorSpec("rows", FP32, (-1, 3)),
            TensorSpec("extra_bias", FP32, (-1, 2)),
            TensorSpec("scale", FP32, (-1, 3)),
        ),
        (
            TensorSpec("sums", FP32, (-1, 2)),
            TensorSpec("pair_0", FP32, (-1, 3)),
            TensorSpec("pair_1", INT64, (-1,)),
        ),
    )


@pytest.mark.parametrize(
    "inputs, outputs",
    [
        (("rows", "extra_bias", "scale"), ("sums", "pair_0", "pair_1")),
        (("INPUT__0", "INPUT__1", "INPUT__2"), ("OUTPUT__0", "OUTPUT__1", "OUTPUT__2")),
        (("ARGS[0]", "ARGS[1][bias]", "KWARGS[scale]"), ("RESULT[sums]", "RESULT[pair][0]", "RESULT[pair][1]")),
    ],
)
def test_every_way_of_naming_tensors(instance: Start, inputs: Any, outputs: Any) -> None:
    config = "".join(f'input {{ name: "{name}" }} ' for name in inputs)
    config += "".join(f'output {{ name: "{name}" }} ' for name in outputs)
    given = dict(zip(inputs, (ROWS, BIAS, 2 * np.ones_like(ROWS)), strict=True))
    made = instance("nested.pt2", config)
    for _ in range(2):  # through PyTorch's checks, and without them
        found = made.run(given, outputs)
        np.testing.assert_allclose(found[outputs[0]], ROWS.sum(1, keepdims=True) / 2 + 2 + np.zeros((2, 2)))
        np.testing.assert_allclose(found[outputs[1]], 2 * ROWS)
        assert found[outputs[2]].tolist() == ROWS.sum(1).tolist()


def test_some_outputs_may_be_left_out_and_a_wrong_name_is_not_in_the_signature(load: Start) -> None:
    found = load("nested.pt2", 'output { name: "OUTPUT__2" } output { name: "nothing" }').signature()
    assert [spec.name for spec in found.outputs] == ["sums", "pair_0", "OUTPUT__2"]


def test_two_names_for_one_tensor_are_refused(load: Start) -> None:
    with pytest.raises(ConfigError, match=r"model 'nested': .*'OUTPUT__0' and 'sums' are the same output"):
        load("nested.pt2", 'output { name: "sums" } output { name: "OUTPUT__0" }')


def test_sizes_that_the_program_was_not_exported_for(instance: Start) -> None:
    made = instance("add_sub.pt2")
    small = np.ones((3, 3), np.float32)
    assert made.run({"LEFT": small, "RIGHT": small}, ["GAP"])["GAP"].sum() == 0
    for shape in ((65, 3), (3, 4)):
        wrong = np.ones(shape, np.float32)
        with pytest.raises(RequestError, match=r"model 'add_sub' cannot compute with these inputs: .*LEFT"):
            made.run({"LEFT": wrong, "RIGHT": wrong}, ["GAP"])
        assert made.run({"LEFT": small, "RIGHT": small}, ["GAP"])["GAP"].sum() == 0


def test_a_batch_larger_than_the_program_takes_is_refused_at_load(load: Start) -> None:
    load("add_sub.pt2", "max_batch_size: 64")
    with pytest.raises(ConfigError, match=r"max_batch_size: 65 is more than .*up to 64.*max_batch_size: 64, or export"):
        load("add_sub.pt2", "max_batch_size: 65")


def test_a_type_that_requests_cannot_carry_is_refused_by_name(load: Start) -> None:
    with pytest.raises(Unsupported, match=r"model 'complex': output 'OUTPUT__0' is torch\.complex64"):
        load("complex.pt2")


def test_an_optional_input_is_refused(load: Start, place: Any) -> None:
    with pytest.raises(ConfigError, match="'LEFT' is optional, but the program needs it"):
        load("add_sub.pt2", 'input { name: "LEFT" optional: true }').instance(place)


def test_a_program_with_state_keeps_it_for_each_instance(load: Start, place: Any) -> None:
    model = load("counter.pt2", instances=2)
    first, second = model.instance(place), model.instance(place)
    results = [one.run({"X": ROWS}, ["OUTPUT__0"])["OUTPUT__0"] for one in (first, first, second)]
    assert [result.tolist() for result in results] == [[15], [30], [15]]


def test_a_program_that_writes_into_its_input_gets_a_copy(instance: Start) -> None:
    given = np.frombuffer(ROWS.tobytes(), np.float32).reshape(2, 3)
    np.testing.assert_array_equal(instance("overwrite.pt2").run({"X": given}, ["OUTPUT__0"])["OUTPUT__0"], 2 * ROWS)
    np.testing.assert_array_equal(given, ROWS)


def test_inputs_share_their_memory_with_the_program(instance: Start) -> None:
    made, given = instance("identity_fp32.pt2"), np.frombuffer(ROWS.tobytes(), np.float32).reshape(2, 3)
    assert np.shares_memory(made.run({"X": given}, ["OUTPUT__0"])["OUTPUT__0"], given)


def changed(name: str, change: Callable[[str, bytes], bytes | None], more: Mapping[str, bytes] | None = None) -> bytes:
    """A program's file with other contents of its parts (None: left out) and further parts."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(MODELS / name) as old, zipfile.ZipFile(buffer, "w") as new:
        for part in old.namelist():
            data = change(part, old.read(part))
            if data is not None:
                new.writestr(part, data)
        for part, data in (more or {}).items():
            new.writestr(part, data)
    return buffer.getvalue()


class Touch:
    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (Path("unpickled"),))


def saved(thing: Any) -> bytes:
    """What torch.save makes of it."""
    import torch

    buffer = io.BytesIO()
    torch.save(thing, buffer)
    return buffer.getvalue()


def with_pickled_weights(data: bytes) -> bytes:
    """A file whose weights are to be unpickled, with this as their content."""

    def change(part: str, content: bytes) -> bytes:
        if part.endswith("weights_config.json"):
            return content.replace(b'"use_pickle": false', b'"use_pickle": true').replace(
                b'"use_pickle":false', b'"use_pickle":true'
            )
        return data if part.endswith("weights/weight_0") else content

    return changed("rows.pt2", change)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(with_pickled_weights(saved(Touch())), id="weights"),
        pytest.param(with_pickled_weights(pickle.dumps(Touch())), id="weights, old format"),
        pytest.param(changed("rows.pt2", lambda part, data: saved(Touch()) if "sample_inputs" in part else data), id="samples"),
        pytest.param(
            changed("rows.pt2", lambda part, data: data, {"rows/data/constants/opaque_obj_0": pickle.dumps(Touch())}),
            id="object",
        ),
        pytest.param(
            changed("rows.pt2", lambda part, data: data, {"rows/data/weights/model.pt": pickle.dumps(Touch())}),
            id="old weights",
        ),
    ],
)
def test_a_file_that_would_run_code_is_refused_before_it_can(
    content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelError, match=r"model 'm': .*could run any code, so it is not loaded"):
        refuse_objects(content, "m")
    assert not (tmp_path / "unpickled").exists()


def test_programs_with_plain_tensors_pass(load: Start) -> None:
    for file in MODELS.glob("*.pt2"):
        refuse_objects(file.read_bytes(), "m")


def test_a_program_that_does_not_load_tells_pytorch_s_reason(
    load: Start, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    from moorage.config.schema import ModelConfig
    from moorage.testing import ModelCase
    from moorage_torchscript.backend import TorchBackend

    broken = changed("rows.pt2", lambda part, data: None if part.endswith("archive_version") else data)
    case = ModelCase(MODELS / "rows.pt2", ModelConfig(name="m"), "model.pt2")
    with (
        caplog.at_level(logging.WARNING),
        pytest.raises(ModelError, match=r"model 'm' version 1: PyTorch cannot load .*archive_version"),
    ):
        TorchBackend().load(case.context(tmp_path, content=broken))
    assert not caplog.records


def test_a_program_can_be_moved_with_its_code(models: Path) -> None:
    """To the device "meta", which every PyTorch has."""
    import torch

    from moorage_torchscript.exported import call_of, is_on_cpu, load_program, move, saved

    program = load_program(torch, saved(torch, load_program(torch, (models / "offset.pt2").read_bytes(), "m")), "m")
    assert is_on_cpu(program)
    moved = move(program, torch.device("meta"))
    assert not is_on_cpu(moved)
    call = call_of(torch, moved)
    for _ in range(2):
        (result,) = call([torch.ones((2, 3), device="meta")])
        assert str(result.device) == "meta"
