"""Copies an S3 prefix to a folder. The folder is either complete or absent.

Files are fetched in parts, several at a time. If the copying is interrupted, the parts that have arrived are kept,
and the next copy continues from there. Each part is requested with the ETag from the listing, so that a file cannot
mix two versions.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import logging
import os
import shutil
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Protocol
from urllib.parse import urlparse

_logger = logging.getLogger(__name__)

# The size in bytes of a part, and of a read from the network.
PART = 64 * 2**20
_CHUNK = 2**20

# How many parts are fetched concurrently. One connection to S3 reaches about 100 MB/s.
_PARALLEL = 12

# How often to try to fetch a part if connections break.
_ATTEMPTS = 4

# How often to check whether another server has finished its copy, in seconds.
_LOOK = 0.5

# Only a complete folder contains this file, which lists the copied files.
_MANIFEST = ".manifest.json"


class WeightsError(Exception):
    """The weights are not available. The message says why."""

    def __init__(self, message: str, *, retryable: bool) -> None:
        super().__init__(message)
        self.retryable = retryable


class Cancelled(Exception):
    """Raised when a copy is stopped."""


class Bucket(Protocol):
    """The methods of boto3's S3 client that this module uses."""

    def get_paginator(self, name: str) -> Any:
        """Returns a function that yields the pages of a listing."""

    def get_object(self, **arguments: Any) -> Any:
        """Returns an object, or a range of its bytes."""


@dataclass(frozen=True)
class _File:
    name: str
    key: str
    size: int
    etag: str


def synchronize(bucket: Bucket, weights: str, cache: Path, stop: threading.Event) -> Path:
    """Returns a folder below the cache that has a copy of s3://bucket/prefix.

    If S3 cannot be reached, an earlier complete copy is used.

    Raises WeightsError, or Cancelled if stop is set.
    """
    url = urlparse(weights)
    folder = cache / hashlib.sha256(weights.encode()).hexdigest()[:16]
    try:
        files = _listed(bucket, url.netloc, url.path.strip("/") + "/", weights)
    except WeightsError:
        raise
    except Exception as error:  # boto3's errors have no common base class
        if not (folder / _MANIFEST).exists():
            raise WeightsError(f"{weights}: {error}", retryable=True) from error
        _logger.warning("cannot reach S3; the weights stay unchanged", extra={"weights": weights, "reason": str(error)})
        return folder
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with _alone(folder.with_name(folder.name + ".lock"), stop):
            if not _whole(folder, files):
                partial = folder.with_name(folder.name + ".partial")
                _fetch_all(bucket, url.netloc, files, folder, partial, stop)
                _publish(partial, folder, files)
    except OSError as error:
        raise _disk_error(cache, error) from error
    return folder


@contextmanager
def _alone(lock: Path, stop: threading.Event) -> Iterator[None]:
    """Keeps out other servers that use the same cache, for example on a machine with several GPUs. The operating
    system releases the lock if the server dies."""
    with lock.open("w") as held:
        while True:
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if stop.wait(_LOOK):
                    raise Cancelled from None
        yield


def _listed(bucket: Bucket, name: str, prefix: str, weights: str) -> list[_File]:
    files = []
    for page in bucket.get_paginator("list_objects_v2").paginate(Bucket=name, Prefix=prefix):
        for item in page.get("Contents", []):
            path = item["Key"].removeprefix(prefix)
            if not path or path.endswith("/"):
                continue
            if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
                raise WeightsError(f"{item['Key']!r} points outside its folder", retryable=False)
            files.append(_File(path, item["Key"], item["Size"], item["ETag"]))
    if not files:
        raise WeightsError(f"{weights} is empty or does not exist", retryable=False)
    return sorted(files, key=lambda file: file.name)


def _whole(folder: Path, files: list[_File]) -> bool:
    """Reports whether the folder matches the listing. File sizes are compared too, in case a file was changed
    locally."""
    try:
        if json.loads((folder / _MANIFEST).read_text()) != [asdict(file) for file in files]:
            return False
        return all((folder / file.name).stat().st_size == file.size for file in files)
    except (OSError, ValueError):
        return False


def _fetch_all(
    bucket: Bucket, name: str, files: list[_File], folder: Path, partial: Path, stop: threading.Event
) -> None:
    partial.mkdir(parents=True, exist_ok=True)
    _keep_what_is_the_same(folder, partial, files)
    targets = [_Target(partial, file) for file in files]
    missing = sum(min(PART, target.file.size - start) for target in targets for start in target.missing())
    free = shutil.disk_usage(partial).free
    if missing > free:
        said = f"{missing / 2**30:.1f} GiB are missing, and {free / 2**30:.1f} GiB are free in {partial.parent}"
        raise WeightsError(said, retryable=False)
    _logger.info("copying weights", extra={"bytes": missing, "files": len(files)})
    failed = threading.Event()

    def fetch(target: _Target, start: int) -> None:
        if stop.is_set():
            raise Cancelled
        if not failed.is_set():
            try:
                target.fetch(bucket, name, start, stop)
            except BaseException:
                failed.set()
                raise

    try:
        with ThreadPoolExecutor(_PARALLEL, thread_name_prefix="part") as pool:
            parts = [pool.submit(fetch, target, start) for target in targets for start in target.missing()]
            for part in as_completed(parts):
                part.result()
    finally:
        for target in targets:
            target.close()


class _Target:
    """A file that is being fetched. Next to it, a second file lists the parts that have arrived."""

    def __init__(self, folder: Path, file: _File) -> None:
        self.file = file
        self._path = folder / file.name
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._mark = self._path.with_name(self._path.name + ".parts")
        self._lock = threading.Lock()
        self._came: set[int] = set()
        try:
            etag, *starts = self._mark.read_text().split("\n")
            if etag == file.etag and self._path.stat().st_size == file.size:
                # The last number may be truncated if no newline follows it.
                self._came = {int(start) for start in starts[:-1]}
        except (OSError, ValueError):
            pass
        if not self._came:
            # Delete the file instead of overwriting it, because it may be a hard link to a file of the current
            # folder.
            self._path.unlink(missing_ok=True)
            self._mark.write_text(file.etag + "\n")
        self._descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT, 0o644)
        os.ftruncate(self._descriptor, file.size)

    def missing(self) -> list[int]:
        """Returns the byte offsets of the missing parts."""
        return [start for start in range(0, self.file.size, PART) if start not in self._came]

    def fetch(self, bucket: Bucket, name: str, start: int, stop: threading.Event) -> None:
        """Fetches a part. Tries again if the connection breaks."""
        for attempt in range(_ATTEMPTS):
            try:
                self._fetch(bucket, name, start, stop)
                break
            except (WeightsError, Cancelled):
                raise
            except Exception as error:  # boto3 and its libraries raise many kinds of errors
                if attempt + 1 == _ATTEMPTS:
                    raise WeightsError(f"{self.file.key}: {error}", retryable=True) from error
                stop.wait(2**attempt)
        with self._lock:
            self._came.add(start)
            with self._mark.open("a") as mark:
                mark.write(f"{start}\n")

    def _fetch(self, bucket: Bucket, name: str, start: int, stop: threading.Event) -> None:
        end = min(start + PART, self.file.size)
        answer = bucket.get_object(
            Bucket=name, Key=self.file.key, Range=f"bytes={start}-{end - 1}", IfMatch=self.file.etag
        )
        at = start
        with closing(answer["Body"]) as body:
            while at < end and (chunk := body.read(min(_CHUNK, end - at))):
                if stop.is_set():
                    raise Cancelled
                try:
                    _write(self._descriptor, chunk, at)
                except OSError as error:
                    raise _disk_error(self._path.parent, error) from error
                at += len(chunk)
        if at != end:
            raise EOFError(f"got {at - start} of {end - start} bytes")

    def close(self) -> None:
        os.close(self._descriptor)


def _write(descriptor: int, chunk: bytes, at: int) -> None:
    """Writes the entire chunk. A single call of pwrite may write less, for example if the disk is full."""
    view = memoryview(chunk)
    while view:
        written = os.pwrite(descriptor, view, at)
        view, at = view[written:], at + written


def _keep_what_is_the_same(folder: Path, partial: Path, files: list[_File]) -> None:
    """Reuses the files that have not changed since the current folder was made, so that they are not fetched again."""
    try:
        kept = {_File(**row) for row in json.loads((folder / _MANIFEST).read_text())}
    except (OSError, ValueError, TypeError):
        return
    for file in kept.intersection(files):
        path = partial / file.name
        if (folder / file.name).stat().st_size != file.size or path.exists():
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        os.link(folder / file.name, path)
        parts = "".join(f"{start}\n" for start in range(0, file.size, PART))
        path.with_name(path.name + ".parts").write_text(file.etag + "\n" + parts)


def _publish(partial: Path, folder: Path, files: list[_File]) -> None:
    """Replaces the old folder with the complete one by renaming."""
    names = {file.name for file in files}
    for path in sorted(partial.rglob("*"), reverse=True):
        if path.is_dir():
            if not any(path.iterdir()):
                path.rmdir()
        elif str(path.relative_to(partial)) not in names:
            path.unlink()
    (partial / _MANIFEST).write_text(json.dumps([asdict(file) for file in files]))
    if folder.exists():
        # Pipelines in memory may have mapped the old files. The files exist until they are unmapped.
        old = folder.with_name(folder.name + ".old")
        shutil.rmtree(old, ignore_errors=True)
        folder.rename(old)
        partial.rename(folder)
        shutil.rmtree(old, ignore_errors=True)
    else:
        partial.rename(folder)


def _disk_error(folder: Path, error: OSError) -> WeightsError:
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    return WeightsError(f"{folder}: {error.strerror or error}", retryable=not full)
