from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from moorage.errors import ModelError, NotFound

SHOW = """
class TritonPythonModel:
    def execute(self, requests):
        return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", np.array([VALUE()], np.int32))]) for _ in requests]
"""


def versions(serve: Callable[..., Any], code: str, **files: Any) -> Any:
    """Two versions with the same files, in which 0 stands for the version."""
    return [
        serve(code + SHOW, version=version, files={name: text.replace("0", str(version)) for name, text in files.items()})
        for version in (1, 2)
    ]


def check(serve: Callable[..., Any], code: str, **files: Any) -> None:
    first, second = versions(
        serve, code, **{name.replace("__", "/").replace("_py", ".py"): text for name, text in files.items()}
    )
    assert (first.values(), second.values(), first.values()) == ([1], [2], [1])


def test_each_version_sees_its_own_neighbour(serve: Callable[..., Any]) -> None:
    check(serve, "import helper\ndef VALUE(): return helper.NUMBER\n", helper_py="NUMBER = 0")


def test_imports_inside_functions_as_well(serve: Callable[..., Any]) -> None:
    check(serve, "def VALUE():\n    from helper import NUMBER\n    return NUMBER\n", helper_py="NUMBER = 0")


def test_relative_imports(serve: Callable[..., Any]) -> None:
    check(serve, "from .helper import NUMBER\ndef VALUE(): return NUMBER\n", helper_py="NUMBER = 0")


def test_packages_and_their_own_imports(serve: Callable[..., Any]) -> None:
    check(
        serve,
        "import pack.inner as inner\nfrom pack import inner as same\nassert inner is same\ndef VALUE(): return inner.NUMBER\n",
        pack____init___py="",
        pack__inner_py="from .leaf import NUMBER\nimport pack.leaf\nassert pack.leaf.NUMBER == NUMBER",
        pack__leaf_py="NUMBER = 0",
    )


def test_a_dotted_import_gives_the_package(serve: Callable[..., Any]) -> None:
    check(serve, "import pack.leaf\ndef VALUE(): return pack.leaf.NUMBER\n", pack____init___py="", pack__leaf_py="NUMBER = 0")


def test_folders_without_init(serve: Callable[..., Any]) -> None:
    check(serve, "from bare.leaf import NUMBER\ndef VALUE(): return NUMBER\n", bare__leaf_py="NUMBER = 0")


def test_neighbours_import_each_other(serve: Callable[..., Any]) -> None:
    check(serve, "import one\ndef VALUE(): return one.NUMBER\n", one_py="from two import NUMBER", two_py="NUMBER = 0")


def test_putting_the_folder_on_sys_path_harms_nobody(serve: Callable[..., Any]) -> None:
    before = list(sys.path)
    code = """
import os, sys
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import helper
def VALUE(): return helper.NUMBER
"""
    check(serve, code, helper_py="NUMBER = 0")
    assert sys.path == before


def test_a_file_of_the_model_s_folder_is_found(serve: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "shared.py").write_text("NUMBER = 7")
    assert serve("import shared\ndef VALUE(): return shared.NUMBER\n" + SHOW).values() == [7]


def test_the_standard_library_comes_first(serve: Callable[..., Any]) -> None:
    assert serve("import json\ndef VALUE(): return hasattr(json, 'dumps')\n" + SHOW, files={"json.py": "x = 1"}).values() == [1]


def test_a_neighbour_comes_before_what_is_installed(serve: Callable[..., Any]) -> None:
    assert serve("import attrs\ndef VALUE(): return attrs.NUMBER\n" + SHOW, files={"attrs.py": "NUMBER = 3"}).values() == [3]


def test_a_bare_folder_comes_after_what_is_installed(serve: Callable[..., Any]) -> None:
    served = serve("import attrs\ndef VALUE(): return hasattr(attrs, 'define')\n" + SHOW, files={"attrs/weights.txt": ""})
    assert served.values() == [1]


def test_a_copy_of_pb_utils_is_not_used(serve: Callable[..., Any]) -> None:
    assert serve(
        "def VALUE(): return 1\n" + SHOW, files={"triton_python_backend_utils.py": "raise ImportError('stub')"}
    ).values() == [1]


def test_libraries_find_the_modules_of_the_only_version(serve: Callable[..., Any]) -> None:
    code = """
import importlib, pickle, helper
def VALUE():
    again = pickle.loads(b"chelper\\nNUMBER\\n.")
    return again if importlib.import_module("helper") is helper else -1
"""
    served = serve(code + SHOW, files={"helper.py": "NUMBER = 5"})
    assert served.values() == [5]
    served.model.close()
    assert "helper" not in sys.modules


def test_libraries_are_refused_where_two_versions_could_be_meant(serve: Callable[..., Any]) -> None:
    code = "import importlib\ndef VALUE(): return importlib.import_module('helper').NUMBER\n" + SHOW
    first = serve(code, version=1, files={"helper.py": "NUMBER = 1"})
    assert first.values() == [1]
    second = serve(code, version=2, files={"helper.py": "NUMBER = 2"})
    assert "m version 1 has one too" in str(second.error())
    first.model.close()
    assert second.values() == [2]


def test_no_byte_code_is_written(serve: Callable[..., Any]) -> None:
    served = serve("import helper\ndef VALUE(): return 1\n" + SHOW, files={"helper.py": "", "pack/__init__.py": ""})
    served.values()
    assert list(served.folder.rglob("__pycache__")) == []


def test_closing_forgets_the_modules(serve: Callable[..., Any]) -> None:
    served = serve("import helper\ndef VALUE(): return 1\n" + SHOW, files={"helper.py": ""})
    assert [name for name in sys.modules if name.startswith("moorage_model_")]
    served.model.close()
    assert [name for name in sys.modules if name.startswith("moorage_model_")] == []


def test_get_model_dir_is_the_version_s_folder(serve: Callable[..., Any]) -> None:
    served = serve(
        "import os\ndef VALUE(): return os.path.exists(os.path.join(pb_utils.get_model_dir(), 'weights.bin'))\n" + SHOW,
        files={"weights.bin": ""},
    )
    assert served.values() == [1]


@pytest.mark.parametrize(
    "code, words",
    [
        ("class TritonPythonModel\n    pass\n", r"SyntaxError: expected ':', at .*/m/1/model\.py:3"),
        (
            "import no_such_module_xyz\n",
            r"ModuleNotFoundError: No module named 'no_such_module_xyz', at .*model\.py:3 in <module>",
        ),
        ("1 / 0\n", "ZeroDivisionError"),
        ("raise SystemExit(4)\n", "SystemExit: 4"),
        ("import broken\n", r"SyntaxError: .*, at .*/m/1/broken\.py:1"),
        ("x = 1\n", "no class TritonPythonModel"),
        (
            "class TritonPythonModel:\n    def initialize(self, args):\n        raise RuntimeError('kaputt')\n",
            "initialize raised RuntimeError: kaputt, at .*:5 in initialize",
        ),
        ("class TritonPythonModel:\n    def __init__(self):\n        raise RuntimeError('kaputt')\n", "RuntimeError: kaputt"),
    ],
)
def test_what_goes_wrong_at_load_is_told_with_file_and_line(serve: Callable[..., Any], code: str, words: str) -> None:
    with pytest.raises(ModelError, match=f"model 'm' version 1: .*{words}"):
        serve(code, files={"broken.py": "def\n"})
    assert [name for name in sys.modules if name.startswith("moorage_model_")] == []


def test_no_file_is_not_found(tmp_path: Path) -> None:
    from moorage_python.source import open_host

    with pytest.raises(NotFound, match=r"model 'm' version 3: no file .*model\.py"):
        open_host("m", 3, tmp_path / "model.py", tmp_path, tmp_path)


def test_runtime_imports_nothing_but_numpy_and_the_standard_library() -> None:
    import subprocess

    code = (
        "import sys, numpy; before = set(sys.modules); import triton_python_backend_utils, moorage_python.runtime.host\n"
        "new = {name.partition('.')[0] for name in set(sys.modules) - before}\n"
        "print(sorted(new - set(sys.stdlib_module_names) - {'moorage_python', 'triton_python_backend_utils', 'numpy'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
