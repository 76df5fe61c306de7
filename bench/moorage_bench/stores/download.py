"""Downloads a repository once and prints what it took: `download.py moorage|boto3|aws ENDPOINT BUCKET FOLDER`.

A program of its own, so that its memory is its own; it is run by the Python that has the client. The time is that of
connecting, listing and downloading; for `aws` it is that of the whole command.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import subprocess
import sys
from pathlib import Path


def with_moorage(endpoint: str, bucket: str, folder: Path) -> None:
    storage, url = importlib.import_module("moorage_s3.storage").S3Storage(), f"s3://{endpoint}/{bucket}"
    storage.download(url, storage.list(url), folder)
    storage.close()


def with_boto3(endpoint: str, bucket: str, folder: Path) -> None:
    """One object after the other, as one writes it first."""
    client = importlib.import_module("boto3").client("s3", endpoint_url=endpoint)
    for page in client.get_paginator("list_objects_v2").paginate(Bucket=bucket):
        for entry in page.get("Contents", ()):
            file = folder / entry["Key"]
            file.parent.mkdir(parents=True, exist_ok=True)
            client.download_file(bucket, entry["Key"], str(file))


def with_aws(endpoint: str, bucket: str, folder: Path) -> None:
    aws = str(Path(sys.executable).parent / "aws")
    words = ["s3", "cp", "--recursive", "--quiet", "--endpoint-url", endpoint, f"s3://{bucket}", str(folder)]
    subprocess.run([aws, *words], check=True)


CLIENTS = {
    "moorage": (with_moorage, "moorage_s3.client"),
    "boto3": (with_boto3, "boto3"),
    "aws": (with_aws, "json"),
}


def main() -> None:
    _, name, endpoint, bucket, folder = sys.argv
    client, library = CLIENTS[name]
    importlib.import_module(library)
    before, memory = os.times(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    client(endpoint, bucket, Path(folder))
    after, grown = os.times(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory
    cpu = sum(after[:4]) - sum(before[:4])  # children included
    print(json.dumps({"seconds": after.elapsed - before.elapsed, "cpu": cpu, "mib": grown / 1024}))


if __name__ == "__main__":
    main()
