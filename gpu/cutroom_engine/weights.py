"""Weights: a folder, or a prefix in S3 that is copied to one."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any
from urllib.parse import urlparse


def local_folder(weights: str, cache: Path, client: Any = None) -> Path:
    """The folder of the weights. What is in S3 is copied below the cache, file by
    file, unless it is there already with the same size and ETag."""
    if not weights.startswith("s3://"):
        return Path(weights)
    url = urlparse(weights)
    prefix = url.path.strip("/") + "/"
    folder = cache / hashlib.sha256(weights.encode()).hexdigest()[:16]
    if client is None:
        import boto3  # only who keeps weights in S3 needs it

        client = boto3.client("s3")
    found = False
    for page in client.get_paginator("list_objects_v2").paginate(Bucket=url.netloc, Prefix=prefix):
        for item in page.get("Contents", []):
            name = item["Key"].removeprefix(prefix)
            if not name or name.endswith("/"):
                continue
            found = True
            _fetch(client, url.netloc, item, _inside(folder, name))
    if not found:
        raise FileNotFoundError(f"there is nothing at {weights}")
    return folder


def _inside(folder: Path, name: str) -> Path:
    path = folder / name
    if not path.resolve().is_relative_to(folder.resolve()):
        raise ValueError(f"{name!r} leads out of its folder")
    return path


def _fetch(client: Any, bucket: str, item: dict[str, Any], path: Path) -> None:
    mark = path.with_name(path.name + ".etag")
    if path.exists() and path.stat().st_size == item["Size"] and mark.exists() and mark.read_text() == item["ETag"]:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    client.download_file(bucket, item["Key"], str(part))
    os.replace(part, path)
    mark.write_text(item["ETag"])
