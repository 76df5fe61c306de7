"""What clients are told of loads, beside what the control mode decides."""

from __future__ import annotations

from typing import Any, cast

import pytest

from moorage._admin import AdminService, AdminSettings, Readiness
from moorage._lifecycle.serving import ServingMap
from moorage.control import LoadOptions, ModelId, Outcome
from moorage.errors import (
    Code,
    ErrorRecord,
    Forbidden,
    Internal,
    InvalidArgument,
    MoorageError,
    NotFound,
    Unavailable,
    Unsupported,
)

FILES = LoadOptions(config="{}", files={"1/model": b""})


class Mode:
    """A control mode that notes what it is asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []
        self.errors: list[ErrorRecord] = []

    async def load(self, name: str, options: LoadOptions) -> list[Outcome]:
        self.asked.append((name, options))
        return [Outcome(ModelId(name), error) for error in self.errors]

    async def unload(self, name: str, *, dependents: bool, versions: frozenset[int] = frozenset()) -> list[Outcome]:
        self.asked.append((name, dependents, versions))
        return [Outcome(ModelId(name), changed=False)]


class StillManager:
    def coming(self) -> frozenset[ModelId]:
        return frozenset({ModelId("later")})

    def failed(self) -> frozenset[ModelId]:
        return frozenset()


def service(mode: Mode, settings: AdminSettings = AdminSettings()) -> AdminService:  # noqa: B008  frozen
    nothing = cast("Any", None)
    manager = cast("Any", StillManager())
    return AdminService(
        serving=ServingMap(), manager=manager, control=nothing, mode=cast("Any", mode), log=nothing, settings=settings
    )


async def test_files_are_forbidden_unless_they_are_allowed() -> None:
    mode = Mode()
    with pytest.raises(Forbidden, match=r"model 'm'.*--allow-model-override"):
        await service(mode).load("m", FILES)
    assert not mode.asked
    await service(mode, AdminSettings(allow_model_override=True)).load("m", FILES)
    await service(mode).load("m", LoadOptions(config="{}"))
    assert mode.asked == [("m", FILES), ("m", LoadOptions(config="{}"))]


@pytest.mark.parametrize(
    "code,kind",
    [
        (Code.INVALID_ARGUMENT, InvalidArgument),
        (Code.NOT_FOUND, NotFound),
        (Code.UNAVAILABLE, Unavailable),
        (Code.UNSUPPORTED, Unsupported),
        (Code.INTERNAL, InvalidArgument),
        (Code.CANCELLED, Internal),
    ],
)
async def test_a_failed_load_tells_all_reasons(code: Code, kind: type[MoorageError]) -> None:
    mode = Mode()
    mode.errors = [ErrorRecord(code, "no layer"), ErrorRecord(Code.INTERNAL, "no file")]
    with pytest.raises(kind, match="no layer; no file") as caught:
        await service(mode).load("m")
    assert type(caught.value) is kind


async def test_an_unload_passes_everything_on() -> None:
    mode = Mode()
    await service(mode).unload("m", dependents=True, versions=frozenset({2}))
    assert mode.asked == [("m", True, frozenset({2}))]


def test_ready_after_the_start_and_until_the_end() -> None:
    waiting = service(Mode())
    waiting.open()
    assert not waiting.ready()
    admin = service(Mode(), AdminSettings(readiness=Readiness(required=("a",))))
    admin.open()
    assert not admin.ready()
    initial = service(Mode(), AdminSettings(readiness=Readiness(policy=_initial())))
    assert not initial.ready()
    initial.open([ModelId("first")])
    assert initial.ready()
    initial.shut()
    assert not initial.ready()


def _initial() -> Any:
    from moorage._admin import ReadinessPolicy

    return ReadinessPolicy.INITIAL
