"""Names of tensors and positions in a model: Triton's conventions, and those of exported programs."""

from __future__ import annotations

import json

import pytest

from moorage_torchscript.leaves import choose, input_leaves, output_leaves, paths
from moorage_torchscript.naming import Convention, index_of, place

ARGUMENTS = ("image", "mask")


@pytest.mark.parametrize(
    "names, convention, positions",
    [
        (("image", "mask"), Convention.ARGUMENT, (0, 1)),
        (("mask", "image"), Convention.ARGUMENT, (1, 0)),
        (("INPUT__0", "INPUT__1"), Convention.INDEX, (0, 1)),
        (("b__1", "a__0"), Convention.INDEX, (1, 0)),
        (("first", "second"), Convention.ORDER, (0, 1)),
        (("INPUT__0", "second"), Convention.ORDER, (0, 1)),
        (("image", "INPUT__1"), Convention.ORDER, (0, 1)),
        (("a__b__0", "x"), Convention.ORDER, (0, 1)),
    ],
)
def test_the_first_convention_that_all_names_follow(names: tuple[str, ...], convention: Convention, positions: object) -> None:
    found = place(names, ARGUMENTS, 2, field="input")
    assert (found.convention, tuple(found.positions[name] for name in names), found.faults) == (convention, positions, ())


@pytest.mark.parametrize(
    "names, words",
    [
        (("INPUT__0", "INPUT__2"), "'INPUT__2' would be input 2, counted from 0, but the model has 2 .*: image, mask"),
        (("INPUT__0", "OTHER__0"), "'OTHER__0' and 'INPUT__0' are both input 0"),
        (("a", "b", "c"), "'c' would be input 2"),
        (("mask", "other"), "'mask' is argument 1 of the model, but stands at 0"),
    ],
)
def test_what_no_convention_can_mean_is_a_fault(names: tuple[str, ...], words: str) -> None:
    import re

    (fault, *_) = place(names, ARGUMENTS, 2, field="input").faults
    assert re.search(words, str(fault)), fault
    assert fault.field.startswith("input[")


def test_any_number_of_results_may_be_unknown() -> None:
    assert place(("OUTPUT__9",), (), None, field="output").positions == {"OUTPUT__9": 9}


@pytest.mark.parametrize("name, index", [("A__12", 12), ("A__", None), ("A_1", None), ("A__1x", None), ("A__1__2", None)])
def test_the_index_is_all_that_follows_the_first_delimiter(name: str, index: int | None) -> None:
    assert index_of(name) == index


def tree(kind: str | None, *children: object, keys: object = None) -> dict[str, object]:
    return {"type": kind, "context": json.dumps(keys), "children_spec": list(children)}


LEAF = tree(None)
CALL = json.dumps(
    [
        1,
        tree(
            "builtins.tuple",
            tree("builtins.tuple", LEAF, tree("builtins.dict", LEAF, LEAF, keys=["low", "high"])),
            tree("builtins.dict", LEAF, keys=["scale"]),
        ),
    ]
)
RESULT = json.dumps([1, tree("builtins.dict", LEAF, tree("builtins.list", LEAF, LEAF), keys=["sum", "pair"])])


def test_arguments_are_called_by_number_by_path_and_by_name() -> None:
    leaves = input_leaves(paths(CALL), range(4), ("rows", "extra", "scale"), ("rows", "extra_low", "extra_high", "scale"))
    assert [leaf.name for leaf in leaves] == ["rows", "extra_low", "extra_high", "scale"]
    for number, path in enumerate(("ARGS[0]", "ARGS[1][low]", "ARGS[1][high]", "KWARGS[scale]")):
        chosen, faults = choose([path, f"INPUT__{(number + 1) % 4}"], leaves, "input")
        assert not faults
        assert chosen[path].position == number
        assert chosen[f"INPUT__{(number + 1) % 4}"].position == (number + 1) % 4


def test_arguments_without_names_are_called_by_number() -> None:
    assert [leaf.name for leaf in input_leaves(paths(CALL), range(4))] == ["INPUT__0", "INPUT__1", "INPUT__2", "scale"]


def test_results_are_called_by_their_keys_or_by_number() -> None:
    leaves = output_leaves(paths(RESULT), range(3))
    assert [leaf.name for leaf in leaves] == ["sum", "pair_0", "pair_1"]
    assert [leaf.aliases for leaf in leaves][2] == ("OUTPUT__2", "RESULT[pair][1]")
    alone = output_leaves(paths(json.dumps([1, LEAF])), range(1))
    assert (alone[0].name, alone[0].aliases) == ("OUTPUT__0", ("OUTPUT__0", "RESULT"))


def test_two_names_of_one_tensor_are_a_fault() -> None:
    leaves = output_leaves(paths(RESULT), range(3))
    _, faults = choose(["sum", "OUTPUT__0"], leaves, "output")
    assert "'OUTPUT__0' and 'sum' are the same output" in str(faults[0])


def test_what_is_no_tree_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="not the form"):
        paths("{}")
