"""What has no place in a repository stops nothing but its own model, and is explained."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from moorage._repository import Repositories, check_name
from moorage.control import ModelId
from moorage.errors import ConfigError, MoorageError, RequestError

Write = Callable[[Mapping[str, str]], Path]
Make = Callable[..., Repositories]
GOOD = {"r/good/config.pbtxt": 'backend: "python"', "r/good/1/model.py": ""}


def test_a_folder_in_place_of_the_configuration(write: Write, repositories: Make) -> None:
    write({**GOOD, "r/m/config.pbtxt/": "", "r/m/1/model.py": ""})
    made = repositories()
    with pytest.raises(ConfigError, match=r"r/m/config\.pbtxt: this is a folder"):
        made.spec(made.scan(), ModelId("m"))
    assert made.spec(made.scan(), ModelId("good")).versions


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
@pytest.mark.parametrize("path", ["config.pbtxt", "1/model.py"])
def test_a_pipe_keeps_nobody_waiting(write: Write, repositories: Make, path: str) -> None:
    root = write({**GOOD, "r/m/1/": ""})
    os.mkfifo(root / "r/m" / path)
    made = repositories()
    with pytest.raises(MoorageError, match=f"model 'm': cannot read .*{path}: it is a named pipe"):
        made.spec(made.scan(), ModelId("m"))
    assert made.spec(made.scan(), ModelId("good")).versions


def test_a_file_too_large_for_a_configuration_is_not_read(write: Write, repositories: Make) -> None:
    root = write({**GOOD, "r/m/1/model.py": "", "r/m/config.pbtxt": ""})
    os.truncate(root / "r/m/config.pbtxt", 100 << 30)  # a hole: no disk can hold it, no reader should try
    made = repositories()
    with pytest.raises(ConfigError, match=r"r/m/config\.pbtxt: it has 107374182400 bytes"):
        made.spec(made.scan(), ModelId("m"))


@pytest.mark.parametrize("name", ["new\nline", "tab\t", "\x1b[31m", "a\x7f", "half \ud800"])
def test_names_that_cannot_be_shown(name: str) -> None:
    with pytest.raises(RequestError, match="cannot be the name of a model") as caught:
        check_name(name)
    assert str(caught.value).isprintable()
