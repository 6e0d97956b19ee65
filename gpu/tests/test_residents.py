from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cutroom_engine.residents import Residents
from cutroom_engine.weights import local_folder

from .conftest import Inverter, model_map


def residents(memory: int | None, need: str | None) -> tuple[Residents, list[str], dict[str, Inverter]]:
    rows = model_map(**({"memory": need} if need else {})).pipelines
    loads: list[str] = []
    made: dict[str, Inverter] = {}

    def load(name: str, _: object) -> Inverter:
        loads.append(name)
        made[name] = Inverter()
        return made[name]

    return Residents(rows, memory, load), loads, made


def test_the_least_recently_used_goes_first() -> None:
    kept, loads, made = residents(2 * 2**30, "1GiB")
    for name in ("edit", "vace", "edit", "text"):
        kept.get(name)
    assert kept.names() == ["edit", "text"]
    assert loads == ["edit", "vace", "text"]
    assert made["vace"].closed
    assert not made["edit"].closed


@pytest.mark.parametrize(("memory", "need"), [(None, "1GiB"), (2**40, None), (2**30, "1GiB"), (2**20, "1GiB")])
def test_one_is_kept_where_the_memory_is_not_known_or_small(memory: int | None, need: str | None) -> None:
    kept, _, made = residents(memory, need)
    kept.get("edit")
    kept.get("vace")
    assert kept.names() == ["vace"]
    assert made["edit"].closed


def test_what_cannot_be_loaded_leaves_the_rest_as_it_is() -> None:
    rows = model_map(memory="1GiB").pipelines

    def load(name: str, _: object) -> Inverter:
        if name == "vace":
            raise OSError("no weights")
        return Inverter()

    kept = Residents(rows, 2**40, load)
    kept.get("edit")
    with pytest.raises(OSError, match="no weights"):
        kept.get("vace")
    assert kept.names() == ["edit"]


class Bucket:
    """A client of S3 with some objects."""

    def __init__(self, objects: dict[str, bytes]) -> None:
        self.objects = objects
        self.fetched: list[str] = []

    def get_paginator(self, _: str) -> Bucket:
        return self

    def paginate(self, Bucket: str, Prefix: str) -> list[dict[str, Any]]:  # as boto3 names them
        found = [name for name in sorted(self.objects) if name.startswith(Prefix)]
        return [
            {"Contents": [{"Key": name, "Size": len(self.objects[name]), "ETag": str(hash(self.objects[name]))}]}
            for name in found
        ]

    def download_file(self, _: str, key: str, path: str) -> None:
        self.fetched.append(key)
        Path(path).write_bytes(self.objects[key])


def test_weights_in_s3_are_copied_once(tmp_path: Path) -> None:
    bucket = Bucket({"lucy/model_index.json": b"{}", "lucy/vae/": b"", "lucy/vae/a.safetensors": b"123", "lucy2/x": b"no"})
    folder = local_folder("s3://models/lucy", tmp_path, bucket)
    assert (folder / "model_index.json").read_bytes() == b"{}"
    assert (folder / "vae" / "a.safetensors").read_bytes() == b"123"
    assert not (folder / "x").exists()
    local_folder("s3://models/lucy", tmp_path, bucket)
    assert len(bucket.fetched) == 2
    bucket.objects["lucy/vae/a.safetensors"] = b"456"
    local_folder("s3://models/lucy", tmp_path, bucket)
    assert bucket.fetched[2:] == ["lucy/vae/a.safetensors"]


def test_weights_that_are_not_there_or_lead_elsewhere(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nothing at s3://models/none"):
        local_folder("s3://models/none", tmp_path, Bucket({}))
    with pytest.raises(ValueError, match="leads out"):
        local_folder("s3://models/a", tmp_path, Bucket({"a/../../evil": b"x"}))
    assert local_folder("/models/a", tmp_path) == Path("/models/a")
