"""The page of flags is the one that the options make."""

from __future__ import annotations

import subprocess
import sys

from docs.fences import ROOT


def test_the_page_of_flags_is_up_to_date() -> None:
    script = str(ROOT / "scripts" / "write_flags.py")
    done = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
