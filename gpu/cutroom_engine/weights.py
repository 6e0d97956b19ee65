"""Finds weights: in a folder, or in an S3 prefix that boto3 copies to a folder."""

from __future__ import annotations

import fcntl
import hashlib
import logging
import shutil
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .files import missing
from .model_map import LivePipelineRow, PipelineRow

_logger = logging.getLogger(__name__)

# How long to wait before a failed copy is tried again, in seconds.
_PAUSE = 30.0


class WeightsError(Exception):
    """The weights are not available. The message says why."""

    def __init__(self, message: str, *, retryable: bool) -> None:
        super().__init__(message)
        self.retryable = retryable


class Weights:
    """Finds the folders of weights. Weights in S3 are copied into the cache in the background, in the given order.
    Files that have not changed are kept. Servers that share the cache copy one prefix at a time."""

    def __init__(self, cache: Path, weights: Iterable[str] = ()) -> None:
        self._cache = cache
        self._left = [one for one in dict.fromkeys(weights) if one.startswith("s3://")]
        # The copies that have ended, each with its error.
        self._ended: dict[str, WeightsError | None] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, name="weights", daemon=True)
        self._thread.start()

    def ready(self, weights: Iterable[str]) -> bool:
        """Reports whether each of the weights is on the disk or is known to be unavailable."""
        return all(not one.startswith("s3://") or one in self._ended for one in weights)

    def folder(self, weights: str) -> Path:
        """Returns the folder of weights for which ready is true. Raises WeightsError if they are unavailable."""
        if not weights.startswith("s3://"):
            return Path(weights)
        if (error := self._ended.get(weights)) is not None:
            raise error
        return self._cache / hashlib.sha256(weights.encode()).hexdigest()[:16]

    def missing(self, row: PipelineRow | LivePipelineRow) -> list[str]:
        """Returns the files that the row needs and that do not exist, unless its weights are still being copied."""
        if not self.ready(row.all_weights):
            return []
        failed = {one: error for one in row.all_weights if (error := self._ended.get(one)) is not None}
        if failed:
            return [one for one, error in failed.items() if not error.retryable]
        return [str(path) for path in missing(row, self.folder)]

    def close(self) -> None:
        """Stops copying. Files that have arrived are kept."""
        self._stop.set()

    def _work(self) -> None:
        while self._left and not self._stop.is_set():
            failed = []
            for one in self._left:
                try:
                    self._copy(one, self._cache / hashlib.sha256(one.encode()).hexdigest()[:16])
                    self._ended[one] = None
                except _Stopped:
                    return
                except Exception as error:  # the errors of boto3 have no common class
                    if not isinstance(error, WeightsError):
                        error = WeightsError(f"{one}: {error}", retryable=True)
                    self._ended[one] = error
                    _logger.error("cannot get the weights", extra={"weights": one, "reason": str(error)})
                    failed.append(one)
            self._left = failed
            self._stop.wait(_PAUSE if failed else 0)

    def _copy(self, weights: str, folder: Path) -> None:
        import boto3  # boto3 is needed only for weights in S3

        client = boto3.client("s3")
        bucket, _, prefix = weights.removeprefix("s3://").partition("/")
        prefix = prefix.rstrip("/") + "/"
        folder.mkdir(parents=True, exist_ok=True)
        with folder.with_name(folder.name + ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            pages = client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
            items = [item for page in pages for item in page.get("Contents", []) if not item["Key"].endswith("/")]
            if not items:
                raise WeightsError(f"{weights} is empty or does not exist", retryable=False)
            files = [(item, folder / item["Key"].removeprefix(prefix)) for item in items]
            wanted = [(item, path) for item, path in files if not _same(item, path)]
            missing, free = sum(item["Size"] for item, _ in wanted), shutil.disk_usage(folder).free
            if missing > free:
                said = f"{missing / 2**30:.1f} GiB are missing, and {free / 2**30:.1f} GiB are free in {self._cache}"
                raise WeightsError(said, retryable=False)
            for item, path in wanted:
                if not path.resolve().is_relative_to(folder.resolve()):
                    raise WeightsError(f"{item['Key']!r} points outside its folder", retryable=False)
                path.parent.mkdir(parents=True, exist_ok=True)
                # This fetches parts of the file concurrently, and renames the file when it is complete.
                client.download_file(bucket, item["Key"], str(path), Callback=self._check)
            for path in set(folder.rglob("*")) - {path for _, path in files}:
                if path.is_file():
                    path.unlink()

    def _check(self, _: int) -> None:
        if self._stop.is_set():
            raise _Stopped


class _Stopped(Exception):
    """Raised when the server stops during a copy."""


def _same(item: dict[str, Any], path: Path) -> bool:
    try:
        status = path.stat()
    except OSError:
        return False
    return bool(status.st_size == item["Size"] and status.st_mtime >= item["LastModified"].timestamp())
