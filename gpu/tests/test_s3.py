"""Tests weights in a local AWS, which boto3 fetches over HTTP."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import boto3
import pytest
from botocore.exceptions import ClientError

from cutroom_engine import sync
from cutroom_engine.sync import WeightsError, synchronize
from cutroom_engine.weights import Weights

from .conftest import free_port

_PYTHON = Path(__file__).parents[2] / ".tools/python/bin/python"

_ACCESS = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_DEFAULT_REGION": "eu-central-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}

WEIGHTS = {"model_index.json": b"{}", "vae/a.safetensors": bytes(range(256)) * 40, "vae/empty": b""}


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Starts a local AWS, which scripts/install-test-tools.sh has installed."""
    port = free_port()
    folder = tmp_path_factory.mktemp("cloud")
    settings = {"BIND_HOST": "127.0.0.1", "GATEWAY_PORT": str(port), "TMPDIR": str(folder), "SFTP_ENABLED": "0"}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [_PYTHON, "-m", "ministack"], cwd=folder, env=os.environ | _ACCESS | settings, stdout=log, stderr=log
        )
        try:
            await_ready(process, f"http://127.0.0.1:{port}/_ministack/ready")
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()
            process.wait()


def await_ready(process: subprocess.Popen[bytes], url: str) -> None:
    for _ in range(6000):
        assert process.poll() is None, "the local AWS ended"
        try:
            with urlopen(url, timeout=120):
                return
        except OSError:
            time.sleep(0.1)
    raise AssertionError("the local AWS does not start")


@pytest.fixture
def bucket(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Returns an S3 client. The bucket "models" has the weights."""
    for name, value in (_ACCESS | {"AWS_ENDPOINT_URL": endpoint}).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sync, "PART", 1000)
    client = boto3.client("s3")
    client.create_bucket(Bucket="models", CreateBucketConfiguration={"LocationConstraint": "eu-central-1"})
    for name, content in WEIGHTS.items():
        client.put_object(Bucket="models", Key=f"some/lucy/{name}", Body=content)
    client.put_object(Bucket="models", Key="some/lucy2/x", Body=b"no")
    return client


def content(folder: Path) -> dict[str, bytes]:
    return {
        str(p.relative_to(folder)): p.read_bytes()
        for p in folder.rglob("*")
        if p.is_file() and p.name != ".manifest.json"
    }


def test_weights_and_their_changes_are_copied_from_s3(bucket: Any, tmp_path: Path) -> None:
    def copied() -> dict[str, bytes]:
        weights = Weights(tmp_path)
        weights.want(["s3://models/some/lucy"])
        for _ in range(600_000):
            if weights.ready(["s3://models/some/lucy"]):
                break
            time.sleep(0.001)
        folder = weights.folder("s3://models/some/lucy")
        weights.close()
        return content(folder)

    assert copied() == WEIGHTS
    bucket.put_object(Bucket="models", Key="some/lucy/model_index.json", Body=b"[]")
    bucket.delete_object(Bucket="models", Key="some/lucy/vae/empty")
    changed = WEIGHTS | {"model_index.json": b"[]"}
    del changed["vae/empty"]
    assert copied() == changed


def test_versions_of_an_object_are_not_mixed(bucket: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sync, "_ATTEMPTS", 1)

    class Changing:
        """A bucket in which an object changes after it was listed."""

        def get_paginator(self, name: str) -> Any:
            return bucket.get_paginator(name)

        def get_object(self, **arguments: Any) -> Any:
            bucket.put_object(Bucket="models", Key="some/lucy/vae/a.safetensors", Body=b"other" * 2048)
            return bucket.get_object(**arguments)

    with pytest.raises(WeightsError) as failed:
        synchronize(Changing(), "s3://models/some/lucy", tmp_path, threading.Event())
    assert failed.value.retryable
    cause = failed.value.__cause__
    assert isinstance(cause, ClientError)
    assert cause.response["Error"]["Code"] == "PreconditionFailed"


@pytest.mark.parametrize(("weights", "retryable"), [("s3://models/none", False), ("s3://none/lucy", True)])
def test_missing_weights_are_reported(bucket: Any, tmp_path: Path, weights: str, retryable: bool) -> None:
    with pytest.raises(WeightsError) as failed:
        synchronize(bucket, weights, tmp_path, threading.Event())
    assert failed.value.retryable == retryable
