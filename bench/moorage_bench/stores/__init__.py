"""A store to measure against, and its clients, as processes."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path

from attrs import frozen

from moorage_bench.load import LoadError

_HERE = Path(__file__).parent
BUCKET = "models"
ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "bench",
    "AWS_SECRET_ACCESS_KEY": "bench",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}
"""What clients need beside the store's URL."""


@frozen
class Store:
    """A running store. Its only bucket holds the files of a folder."""

    endpoint: str

    @property
    def url(self) -> str:
        """Its bucket as a model repository."""
        return f"s3://{self.endpoint}/{BUCKET}"

    def asked(self) -> dict[str, int]:
        """How many requests of each kind have come since this was asked last."""
        with urllib.request.urlopen(f"{self.endpoint}/-/counts", timeout=30) as answer:
            counts: dict[str, int] = json.load(answer)
        return counts


@contextlib.contextmanager
def serving_folder(folder: Path, latency_s: float) -> Iterator[Store]:
    """A store of the folder's files, which answers each request after this time."""
    command = [sys.executable, str(_HERE / "folder_store.py"), str(folder), str(latency_s)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield Store(process.stdout.readline().strip())
        finally:
            process.terminate()


@frozen
class Taken:
    """What a download took."""

    seconds: float
    cpu: float
    """Seconds of processor time, on all cores."""
    mib: float
    """Growth of the resident memory at its peak."""


def download(client: str, python: Path, store: Store, target: Path) -> Taken:
    """Download all into a new folder, and remove it. Raises LoadError if the client fails."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    command: Sequence[str] = [str(python), str(_HERE / "download.py"), client, store.endpoint, BUCKET, str(target)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=_environment())
    shutil.rmtree(target)
    if done.returncode:
        raise LoadError(f"{client} cannot download: {done.stderr.strip().splitlines()[-1:]}")
    return Taken(**json.loads(done.stdout))


def _environment() -> dict[str, str]:
    return {**os.environ, **ENVIRONMENT}
