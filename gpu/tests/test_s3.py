"""Tests weights in a local AWS, which boto3 fetches over HTTP."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.request import urlopen

import boto3
import pytest

from cutroom_engine.model_map import LivePipelineRow
from cutroom_engine.weights import Weights, WeightsError

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
    client = boto3.client("s3")
    client.create_bucket(Bucket="models", CreateBucketConfiguration={"LocationConstraint": "eu-central-1"})
    for name, content in WEIGHTS.items():
        client.put_object(Bucket="models", Key=f"some/lucy/{name}", Body=content)
    client.put_object(Bucket="models", Key="some/lucy2/x", Body=b"no")
    return client


def copied(cache: Path, location: str = "s3://models/some/lucy") -> dict[str, bytes]:
    weights = Weights(cache, [location])
    try:
        for _ in range(60_000):
            if weights.ready([location]):
                break
            time.sleep(0.01)
        folder = weights.folder(location)
    finally:
        weights.close()
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_weights_and_their_changes_are_copied_from_s3(bucket: Any, tmp_path: Path) -> None:
    assert copied(tmp_path) == WEIGHTS
    kept = {path: path.stat().st_ino for path in tmp_path.rglob("*.safetensors")}
    bucket.put_object(Bucket="models", Key="some/lucy/model_index.json", Body=b"[]")
    bucket.delete_object(Bucket="models", Key="some/lucy/vae/empty")
    changed = WEIGHTS | {"model_index.json": b"[]"}
    del changed["vae/empty"]
    assert copied(tmp_path) == changed
    assert {path: path.stat().st_ino for path in kept} == kept, "an unchanged file was fetched again"


@pytest.mark.parametrize(("weights", "retryable"), [("s3://models/none", False), ("s3://none/lucy", True)])
def test_missing_weights_are_reported(bucket: Any, tmp_path: Path, weights: str, retryable: bool) -> None:
    with pytest.raises(WeightsError) as failed:
        copied(tmp_path, weights)
    assert failed.value.retryable == retryable
    row = LivePipelineRow(weights=weights, steps=2)
    copies = Weights(tmp_path, [weights])
    while not copies.ready([weights]):
        time.sleep(0.01)
    assert copies.missing(row) == ([] if retryable else [weights])
    copies.close()


def test_full_disk_is_reported(bucket: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=9))
    with pytest.raises(WeightsError, match="are missing, and") as failed:
        copied(tmp_path)
    assert not failed.value.retryable
