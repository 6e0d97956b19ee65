"""Tests weights in S3, with a client that responds as boto3 does."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from cutroom_engine import sync
from cutroom_engine.sync import Cancelled, WeightsError, synchronize
from cutroom_engine.weights import Weights

MODEL = {"lucy/model_index.json": b"{}", "lucy/vae/": b"", "lucy/vae/a.safetensors": b"0123456789", "lucy2/x": b"no"}


def ignore_key(_: str) -> None:
    """The default for Bucket.before."""


class Bucket:
    """Objects in S3, and the ranges of them that were requested."""

    def __init__(self, objects: dict[str, bytes]) -> None:
        self.objects = dict(objects)
        self.asked: list[tuple[str, str]] = []
        self.reachable = True
        self.listed = False
        # Called before each response. It may raise an error.
        self.before: Callable[[str], None] = lambda _: None
        # Responses are truncated to this many bytes.
        self.cut: int | None = None

    def get_paginator(self, _: str) -> Bucket:
        return self

    def paginate(self, Bucket: str, Prefix: str) -> Iterator[dict[str, Any]]:  # these are boto3's argument names
        if not self.reachable:
            raise RuntimeError("Could not connect to the endpoint URL")
        self.listed = True
        for name, content in sorted(self.objects.items()):
            if name.startswith(Prefix):
                yield {"Contents": [{"Key": name, "Size": len(content), "ETag": self.etag(name)}]}

    def etag(self, name: str) -> str:
        return f'"{hashlib.md5(self.objects[name]).hexdigest()}"'

    def get_object(self, *, Bucket: str, Key: str, Range: str, IfMatch: str) -> dict[str, Any]:
        self.asked.append((Key, Range))
        self.before(Key)
        if IfMatch != self.etag(Key):
            raise RuntimeError("An error occurred (PreconditionFailed)")
        first, last = Range.removeprefix("bytes=").split("-")
        return {"Body": io.BytesIO(self.objects[Key][int(first) : int(last) + 1][: self.cut])}


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sets the part size to four bytes, with no concurrency and no retries."""
    monkeypatch.setattr(sync, "PART", 4)
    monkeypatch.setattr(sync, "_PARALLEL", 1)
    monkeypatch.setattr(sync, "_ATTEMPTS", 1)


def copied(bucket: Bucket, cache: Path) -> Path:
    return synchronize(bucket, "s3://models/lucy", cache, threading.Event())


def content(folder: Path) -> dict[str, bytes]:
    return {
        str(p.relative_to(folder)): p.read_bytes()
        for p in folder.rglob("*")
        if p.is_file() and p.name != ".manifest.json"
    }


def folders(cache: Path) -> list[str]:
    return [path.name for path in cache.iterdir() if path.is_dir()]


WHOLE = {"model_index.json": b"{}", "vae/a.safetensors": b"0123456789"}


def test_weights_are_copied_once(tmp_path: Path) -> None:
    bucket = Bucket(MODEL)
    folder = copied(bucket, tmp_path)
    assert content(folder) == WHOLE
    assert bucket.asked == [
        ("lucy/model_index.json", "bytes=0-1"),
        ("lucy/vae/a.safetensors", "bytes=0-3"),
        ("lucy/vae/a.safetensors", "bytes=4-7"),
        ("lucy/vae/a.safetensors", "bytes=8-9"),
    ]
    assert copied(bucket, tmp_path) == folder
    assert len(bucket.asked) == 4
    assert folders(tmp_path) == [folder.name]


def test_parts_can_be_fetched_in_parallel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sync, "_PARALLEL", 8)
    bucket = Bucket({f"lucy/{i}": bytes(range(i)) * 9 for i in range(30)})
    assert content(copied(bucket, tmp_path)) == {str(i): bytes(range(i)) * 9 for i in range(30)}


def test_changed_files_are_fetched_and_removed_ones_deleted(tmp_path: Path) -> None:
    bucket = Bucket(MODEL | {"lucy/old": b"old"})
    copied(bucket, tmp_path)
    bucket.asked.clear()
    bucket.objects["lucy/model_index.json"] = b"[]"
    del bucket.objects["lucy/old"]
    assert content(copied(bucket, tmp_path)) == WHOLE | {"model_index.json": b"[]"}
    assert bucket.asked == [("lucy/model_index.json", "bytes=0-1")]


def test_modified_folder_is_copied_again(tmp_path: Path) -> None:
    bucket = Bucket(MODEL)
    folder = copied(bucket, tmp_path)
    (folder / "vae" / "a.safetensors").write_bytes(b"cut")
    assert content(copied(bucket, tmp_path)) == WHOLE


@pytest.mark.parametrize("etag", ["same", "changed"])
def test_interrupted_copy_continues(tmp_path: Path, etag: str) -> None:
    bucket = Bucket(MODEL)

    def fail(_: str) -> None:
        if len(bucket.asked) == 3:
            raise RuntimeError("Connection was closed")

    bucket.before = fail
    with pytest.raises(WeightsError, match="Connection was closed") as failed:
        copied(bucket, tmp_path)
    assert failed.value.retryable
    assert [Path(name).suffix for name in folders(tmp_path)] == [".partial"], "an incomplete folder was published"
    bucket.asked.clear()
    bucket.before = ignore_key
    if etag == "changed":
        bucket.objects["lucy/vae/a.safetensors"] = b"abcdefghij"
    assert content(copied(bucket, tmp_path)) == WHOLE | {"vae/a.safetensors": bucket.objects["lucy/vae/a.safetensors"]}
    assert [wanted for _, wanted in bucket.asked] == (["bytes=0-3"] if etag == "changed" else []) + [
        "bytes=4-7",
        "bytes=8-9",
    ]


def test_interrupted_update_keeps_current_weights(tmp_path: Path) -> None:
    bucket = Bucket(MODEL)
    folder = copied(bucket, tmp_path)
    bucket.objects["lucy/model_index.json"] = b"[]"

    def fail(_: str) -> None:
        raise RuntimeError("Connection was closed")

    bucket.before = fail
    with pytest.raises(WeightsError):
        copied(bucket, tmp_path)
    # The partial copy shares this file with the current folder by a hard link. Now the object changes too.
    bucket.objects["lucy/vae/a.safetensors"] = b"abcdefghij"
    with pytest.raises(WeightsError):
        copied(bucket, tmp_path)
    assert content(folder) == WHOLE
    bucket.before = ignore_key
    assert content(copied(bucket, tmp_path)) == {"model_index.json": b"[]", "vae/a.safetensors": b"abcdefghij"}


def test_broken_connection_is_retried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sync, "_ATTEMPTS", 2)
    bucket = Bucket(MODEL)

    def fail(_: str) -> None:
        if len(bucket.asked) == 1:
            raise RuntimeError("Connection was closed")

    bucket.before = fail
    assert content(copied(bucket, tmp_path)) == WHOLE


def test_changed_or_short_object_is_an_error(tmp_path: Path) -> None:
    bucket = Bucket(MODEL)
    bucket.before = lambda key: bucket.objects.update({key: b"other"})
    with pytest.raises(WeightsError, match="PreconditionFailed"):
        copied(bucket, tmp_path)
    bucket = Bucket(MODEL)
    bucket.cut = 1
    with pytest.raises(WeightsError, match="got 1 of 2 bytes"):
        copied(bucket, tmp_path)


def test_small_disk_is_reported_before_copying(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(100, 89, 11))  # type: ignore[attr-defined]
    bucket = Bucket(MODEL)
    with pytest.raises(WeightsError, match="are missing") as failed:
        copied(bucket, tmp_path)
    assert (failed.value.retryable, bucket.asked) == (False, [])


def test_disk_that_fills_during_copy_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(sync.os, "pwrite", full)
    with pytest.raises(WeightsError, match="No space left on device") as failed:
        copied(Bucket(MODEL), tmp_path)
    assert not failed.value.retryable


def test_copied_weights_are_used_if_s3_is_unreachable(tmp_path: Path) -> None:
    bucket = Bucket(MODEL)
    folder = copied(bucket, tmp_path)
    bucket.reachable = False
    assert copied(bucket, tmp_path) == folder
    with pytest.raises(WeightsError, match="Could not connect") as failed:
        copied(bucket, tmp_path / "empty")
    assert failed.value.retryable


@pytest.mark.parametrize(
    ("objects", "says"),
    [
        ({}, "s3://models/lucy is empty or does not exist"),
        ({"lucy/../../evil": b"x"}, "points outside"),
        ({"lucy//etc/x": b"x"}, "points outside"),
    ],
)
def test_missing_or_escaping_weights_are_rejected(tmp_path: Path, objects: dict[str, bytes], says: str) -> None:
    with pytest.raises(WeightsError, match=says) as failed:
        copied(Bucket(objects), tmp_path)
    assert not failed.value.retryable


def test_copying_stops_on_request(tmp_path: Path) -> None:
    stop = threading.Event()
    bucket = Bucket(MODEL)
    bucket.before = lambda _: stop.set()
    with pytest.raises(Cancelled):
        synchronize(bucket, "s3://models/lucy", tmp_path, stop)
    assert len(bucket.asked) == 1


def test_servers_with_one_cache_copy_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sync, "_LOOK", 0.001)
    bucket, other = Bucket(MODEL), Bucket(MODEL)
    looked = threading.Event()
    other.before = lambda _: pytest.fail("both copy")
    bucket.before = lambda _: looked.wait(120) and None
    with ThreadPoolExecutor(2) as servers:
        first = servers.submit(copied, bucket, tmp_path)
        await_true(lambda: bool(bucket.asked))
        second = servers.submit(copied, other, tmp_path)
        await_true(lambda: other.listed)
        stop = threading.Event()
        stop.set()
        with pytest.raises(Cancelled):
            synchronize(Bucket(MODEL), "s3://models/lucy", tmp_path, stop)
        looked.set()
        assert content(first.result(120)) == content(second.result(120)) == WHOLE


def await_true(check: Callable[[], bool]) -> None:
    for _ in range(600_000):
        if check():
            return
        time.sleep(0.001)
    raise AssertionError("the condition was not met in time")


def folder_of(weights: Weights, *wanted: str) -> Path:
    """Waits for these weights, and returns the folder of the first."""
    weights.want(wanted)
    await_true(lambda: weights.ready(wanted))
    return weights.folder(wanted[0])


def held(bucket: Bucket) -> tuple[threading.Event, threading.Event]:
    """Delays the bucket's responses. The first returned event is set when a request arrives; set the second to
    release the responses."""
    begun, go_on = threading.Event(), threading.Event()

    def hold(_: str) -> None:
        begun.set()
        go_on.wait(120)

    bucket.before = hold
    return begun, go_on


def test_weights_are_copied_in_the_background(tmp_path: Path) -> None:
    bucket = Bucket(MODEL)
    begun, go_on = held(bucket)
    weights = Weights(tmp_path, lambda: bucket)
    weights.start(["/models/a", "s3://models/lucy"])
    assert begun.wait(120)
    assert not weights.ready(["/models/a", "s3://models/lucy"])
    with pytest.raises(WeightsError, match="still being copied"):
        weights.folder("s3://models/lucy")
    assert weights.ready(["/models/a"])
    assert weights.folder("/models/a") == Path("/models/a")
    go_on.set()
    assert content(folder_of(weights, "s3://models/lucy", "/models/a")) == WHOLE
    weights.close()


def test_requested_weights_are_copied_first(tmp_path: Path) -> None:
    bucket = Bucket({f"{name}/{part}": b"0123" for name in "abc" for part in "12"})
    begun, go_on = held(bucket)
    weights = Weights(tmp_path, lambda: bucket)
    weights.start([f"s3://models/{name}" for name in "abc"])
    assert begun.wait(120)
    weights.want(["s3://models/c"])
    weights.want(["s3://models/c"])
    go_on.set()
    await_true(lambda: weights.ready([f"s3://models/{name}" for name in "abc"]))
    keys = [key for key, _ in bucket.asked]
    assert keys[0] == "a/1"
    assert keys[1:3] == ["c/1", "c/2"], "requested weights must be copied first"
    assert content(weights.folder("s3://models/a")) == {"1": b"0123", "2": b"0123"}
    weights.close()


def test_unavailable_weights_are_retried(tmp_path: Path) -> None:
    bucket = Bucket({})
    weights = Weights(tmp_path, lambda: bucket)
    with pytest.raises(WeightsError, match="is empty or does not exist"):
        folder_of(weights, "s3://models/lucy")
    bucket.objects.update(MODEL)
    assert json.loads((folder_of(weights, "s3://models/lucy") / "model_index.json").read_text()) == {}
    weights.close()


def test_missing_credentials_are_reported(tmp_path: Path) -> None:
    def none() -> Bucket:
        raise RuntimeError("Unable to locate credentials")

    weights = Weights(tmp_path, none)
    with pytest.raises(WeightsError, match="locate credentials") as failed:
        folder_of(weights, "s3://models/lucy")
    assert failed.value.retryable
    weights.close()


def test_stopping_server_stops_copying(tmp_path: Path) -> None:
    bucket = Bucket(MODEL)
    begun, go_on = held(bucket)
    weights = Weights(tmp_path, lambda: bucket)
    weights.start(["s3://models/lucy"])
    assert begun.wait(120)
    with ThreadPoolExecutor(1) as ending:
        closed = ending.submit(weights.close)
        await_true(lambda: weights._closed)
        go_on.set()
        closed.result(120)
    assert len(bucket.asked) == 1
    assert [Path(name).suffix for name in folders(tmp_path)] == [".partial"]
