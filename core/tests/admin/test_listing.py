"""The lines of the repository index."""

from __future__ import annotations

from moorage._admin.listing import entries
from moorage._admin.values import IndexEntry
from moorage._lifecycle.status import VersionStatus
from moorage.control import FoundModel, ModelId, Snapshot
from moorage.errors import Code, ErrorRecord

A, GONE = ModelId("a"), ModelId("gone")
NORTH, SOUTH = ModelId("a", "north"), ModelId("a", "south")
TWICE = ErrorRecord(Code.INVALID_ARGUMENT, "in two repositories")


def found(*models: ModelId, problem: ErrorRecord | None = None) -> dict[ModelId, FoundModel]:
    return {model: FoundModel(model, "repo", (1,), "f", problem) for model in models}


def test_a_model_that_was_never_tried_is_a_name() -> None:
    assert entries(Snapshot(found(A)), [], ()) == [IndexEntry("a")]


def test_the_versions_of_a_model() -> None:
    statuses = [VersionStatus(A, 1, "UNAVAILABLE", "unloaded"), VersionStatus(A, 2, "READY")]
    assert entries(Snapshot(found(A)), statuses, ()) == [
        IndexEntry("a", "1", "UNAVAILABLE", "unloaded"),
        IndexEntry("a", "2", "READY"),
    ]


def test_a_model_that_cannot_be_loaded_as_it_stands() -> None:
    line = IndexEntry("a", "", "UNAVAILABLE", "in two repositories")
    assert entries(Snapshot(found(A, problem=TWICE)), [], ()) == [line]
    tried = [VersionStatus(A, 1, "READY")]
    assert entries(Snapshot(found(A, problem=TWICE)), tried, ()) == [line, IndexEntry("a", "1", "READY")]
    told = [VersionStatus(A, None, "UNAVAILABLE", "told")]
    assert entries(Snapshot(found(A, problem=TWICE)), told, ()) == [IndexEntry("a", "", "UNAVAILABLE", "told")]


def test_what_is_in_no_repository_is_left_out_unless_it_is_kept() -> None:
    status = VersionStatus(GONE, 1, "READY")
    assert entries(Snapshot({}), [status], ()) == []
    assert entries(Snapshot({}), [status], [GONE]) == [IndexEntry("gone", "1", "READY")]
    assert entries(Snapshot({}), [], [GONE]) == []


def test_nothing_is_left_out_while_a_repository_cannot_be_read() -> None:
    snapshot = Snapshot({}, {"repo": ErrorRecord(Code.INTERNAL, "no route to host")})
    assert entries(snapshot, [VersionStatus(GONE, 1, "READY")], ()) == [IndexEntry("gone", "1", "READY")]


def test_a_name_in_two_namespaces_is_told_apart() -> None:
    other = ModelId("b", "south")
    statuses = [VersionStatus(NORTH, 1, "READY"), VersionStatus(other, 1, "READY")]
    assert entries(Snapshot(found(NORTH, SOUTH, other)), statuses, ()) == [
        IndexEntry("north::a", "1", "READY"),
        IndexEntry("south::a"),
        IndexEntry("b", "1", "READY"),
    ]
