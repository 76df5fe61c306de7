"""Makes the small model files of the tests: `python make_models.py` writes them beside itself."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

HERE = Path(__file__).parent
DTYPES = {
    "bool": torch.bool,
    "uint8": torch.uint8,
    "uint16": torch.uint16,
    "uint32": torch.uint32,
    "uint64": torch.uint64,
    "int8": torch.int8,
    "int16": torch.int16,
    "int32": torch.int32,
    "int64": torch.int64,
    "fp16": torch.float16,
    "fp32": torch.float32,
    "fp64": torch.float64,
    "bf16": torch.bfloat16,
}


class AddSub(nn.Module):
    def forward(self, LEFT: Tensor, RIGHT: Tensor) -> tuple[Tensor, Tensor]:
        return LEFT + RIGHT, LEFT - RIGHT


class Table(nn.Module):
    """The same, but for its result: a table of tensors."""

    def forward(self, LEFT: Tensor, RIGHT: Tensor) -> dict[str, Tensor]:
        return {"TOTAL": LEFT + RIGHT, "GAP": LEFT - RIGHT}


class TableIn(nn.Module):
    def forward(self, tensors: dict[str, Tensor]) -> Tensor:
        return tensors["LEFT"] - tensors["RIGHT"]


class ListIn(nn.Module):
    def forward(self, tensors: list[Tensor]) -> list[Tensor]:
        return [tensors[0] + tensors[1], tensors[0] - tensors[1]]


class Identity(nn.Module):
    def forward(self, X: Tensor) -> Tensor:
        return X


class Words(nn.Module):
    """Strings, and how many there are of them."""

    def forward(self, words: list[str], number: Tensor) -> tuple[list[str], Tensor]:
        return [word.upper() for word in words], number + len(words)


class WordsIdentity(nn.Module):
    def forward(self, X: list[str]) -> list[str]:
        return X


class Blur(nn.Module):
    """A 3x3 box blur of images of any size, with a batch norm that changes nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 1, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(1, eps=0.0)
        nn.init.constant_(self.conv.weight, 1 / 9)

    def forward(self, IMAGE: Tensor) -> Tensor:
        blurred: Tensor = self.norm(self.conv(IMAGE))
        return blurred


class Counter(nn.Module):
    """Adds up what it is given, in place, and gives the sum itself."""

    total: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(1))

    def forward(self, X: Tensor) -> Tensor:
        self.total += X.sum()
        return self.total


class Overwrite(nn.Module):
    """Writes into its input."""

    def forward(self, X: Tensor) -> Tensor:
        X.mul_(2)
        return X + 0


class Options(nn.Module):
    """Arguments that may be left out, and numbers and texts."""

    def forward(self, X: Tensor, bias: Tensor | None = None, times: int = 1, sign: str = "+") -> Tensor:
        result = X * times
        if bias is not None:
            result = result + bias
        return -result if sign == "-" else result


class Rows(nn.Module):
    """Looks up rows of a table of 1024 x 8."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(1024, 8)
        self.table.weight.data = torch.arange(1024 * 8, dtype=torch.float32).reshape(1024, 8)

    def forward(self, ROW: Tensor) -> Tensor:
        rows: Tensor = self.table(ROW)
        return rows


class Reshape(nn.Module):
    """Fails inside unless it is given four numbers."""

    def forward(self, X: Tensor) -> Tensor:
        return X.reshape(2, 2)


class Raises(nn.Module):
    def forward(self, X: Tensor) -> Tensor:
        if X.sum() > 0:
            raise ValueError("too much")
        return X


class Scalar(nn.Module):
    def forward(self, X: Tensor) -> float:
        return float(X.sum())


class Nested(nn.Module):
    """Arguments and results in containers, for programs that are exported."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 2)
        nn.init.constant_(self.linear.weight, 0.5)
        nn.init.constant_(self.linear.bias, 1)

    def forward(self, rows: Tensor, extra: Mapping[str, Tensor], *, scale: Tensor) -> dict[str, Any]:
        return {"sums": self.linear(rows) + extra["bias"], "pair": (rows * scale, rows.sum(-1).to(torch.int64))}


class Offset(nn.Module):
    """Its code names a device."""

    def forward(self, X: Tensor) -> Tensor:
        return X + torch.arange(3, dtype=torch.float32, device="cpu")


class Complex(nn.Module):
    def forward(self, X: Tensor) -> Tensor:
        return X.to(torch.complex64)


BATCH = torch.export.Dim("batch", min=1, max=64)


def script(name: str, module: nn.Module, *, training: bool = False) -> None:
    torch.jit.script(module.train(training)).save(HERE / f"{name}.pt")  # type: ignore[no-untyped-call]


def trace(name: str, module: nn.Module, *examples: Tensor) -> None:
    torch.jit.trace(module.eval(), examples).save(HERE / f"{name}.pt")  # type: ignore[no-untyped-call]


def export(name: str, module: nn.Module, arguments: tuple[Any, ...], shapes: Any, **more: Tensor) -> None:
    program = torch.export.export(module.eval(), arguments, more, dynamic_shapes=shapes)
    torch.export.save(program, HERE / f"{name}.pt2")


def scripts() -> None:
    modules = {
        "table": Table(),
        "table_in": TableIn(),
        "list_in": ListIn(),
        "words": Words(),
        "identity": Identity(),
        "identity_words": WordsIdentity(),
        "blur": Blur(),
        "counter": Counter(),
        "overwrite": Overwrite(),
        "options": Options(),
        "reshape": Reshape(),
        "rows": Rows(),
        "raises": Raises(),
        "scalar": Scalar(),
    }
    for name, module in modules.items():
        script(name, module)
    script("add_sub", AddSub())
    script("dropout", nn.Dropout(), training=True)
    trace("traced", AddSub(), torch.zeros(2, 3), torch.ones(2, 3))


def programs() -> None:
    first = {0: BATCH}
    left, right = torch.ones(2, 3), torch.zeros(2, 3)
    export("add_sub", Table(), (left, right), {"LEFT": first, "RIGHT": first})
    export("pair", AddSub(), (left, right), {"LEFT": first, "RIGHT": first})
    export("fixed", AddSub(), (left, right), None)
    export("blur", Blur(), (torch.ones(2, 1, 5, 5),), {"IMAGE": {0: BATCH, 2: torch.export.Dim("h"), 3: torch.export.Dim("w")}})
    nested = {"rows": first, "extra": {"bias": first}, "scale": first}
    export("nested", Nested(), (left, {"bias": torch.ones(2, 2)}), nested, scale=right)
    export("rows", Rows(), (torch.zeros(2, dtype=torch.int64),), {"ROW": first})
    export("counter", Counter(), (left,), {"X": first})
    export("overwrite", Overwrite(), (left,), {"X": first})
    export("offset", Offset(), (left,), {"X": first})
    export("complex", Complex(), (left,), {"X": first})
    for name, dtype in DTYPES.items():
        export(f"identity_{name}", Identity(), (torch.ones(2, 3).to(dtype),), {"X": {0: BATCH, 1: torch.export.Dim("any")}})


class Marker:
    """Leaves a file behind when it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (Path("unpickled"),))


def others() -> None:
    """Files that are called .pt, and are not TorchScript."""
    model = nn.Linear(2, 2)
    torch.save(model.state_dict(), HERE / "state_dict.pt")
    torch.save(model, HERE / "pickled_module.pt")
    torch.save(model.state_dict(), HERE / "legacy_state_dict.pt", _use_new_zipfile_serialization=False)
    torch.save(model, HERE / "legacy_module.pt", _use_new_zipfile_serialization=False)
    (HERE / "pickle.pt").write_bytes(pickle.dumps(Marker()))
    torch.save({"weights": torch.ones(1), "marker": Marker()}, HERE / "marker.pt")


def main() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scripts()
        programs()
        others()


if __name__ == "__main__":
    main()
