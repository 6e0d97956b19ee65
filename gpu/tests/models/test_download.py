"""Tests downloads with the hub's own client, from a server that responds as the hub does."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from safetensors.torch import load_file

from cutroom_engine.cards import choose
from cutroom_engine.files import missing
from cutroom_engine.loading import Loader
from cutroom_engine.model_map import read_model_file

from ..conftest import free_port
from .test_diffusion import nothing, shot
from .test_loras import lora
from .tiny import fields, make, make_depth

SHA = "0123456789abcdef0123456789abcdef01234567"


class Hub:
    """Repositories below a folder, and the paths that were fetched."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.licenses: dict[str, str] = {}
        self.fetched: list[str] = []
        self.ranges: list[str] = []
        # A file whose first response breaks off in the middle.
        self.breaks = ""

    def files(self, repository: str) -> dict[str, bytes]:
        folder = self.root / repository
        return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[tuple[Hub, str]]:
    here = Hub(tmp_path / "hub")

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            """Keeps the log empty."""

        def send(self, body: bytes, status: int = 200, **headers: str) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name.replace("_", "-"), value)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            repository = re.search(r"\w+/[\w.-]+(?=/(revision|tree|resolve))", path)
            if repository is None or not (here.root / repository[0]).is_dir():
                self.send(b"{}", 404)
            elif found := re.fullmatch(r"/api/models/(\w+/[\w.-]+)/revision/main", path):
                siblings = [{"rfilename": name, "size": len(body)} for name, body in here.files(found[1]).items()]
                card = {"license": here.licenses.get(found[1], "apache-2.0")}
                self.send(json.dumps({"id": found[1], "sha": SHA, "siblings": siblings, "cardData": card}).encode())
            elif found := re.fullmatch(rf"/api/models/(\w+/[\w.-]+)/tree/{SHA}", path):
                tree = [
                    {"type": "file", "path": name, "size": len(body), "oid": hashlib.sha1(body).hexdigest()}
                    for name, body in here.files(found[1]).items()
                ]
                self.send(json.dumps(tree).encode(), content_type="application/json")
            elif found := re.fullmatch(rf"/(\w+/[\w.-]+)/resolve/{SHA}/(.+)", path):
                self.file(found[1], found[2])
            else:
                self.send(b"{}", 404)

        do_HEAD = do_GET

        def file(self, repository: str, name: str) -> None:
            body = here.files(repository)[name]
            headers = {"etag": f'"{hashlib.sha1(body).hexdigest()}"', "x_repo_commit": SHA, "accept_ranges": "bytes"}
            if self.command == "HEAD":
                self.send(body, **headers)
                return
            here.fetched.append(f"{repository}/{name}")
            if wanted := self.headers.get("range"):
                here.ranges.append(wanted)
                begin = int(re.findall(r"\d+", wanted)[0])
                headers["content_range"] = f"bytes {begin}-{len(body) - 1}/{len(body)}"
                self.send(body[begin:], 206, **headers)
            elif here.breaks == name:
                here.breaks = ""
                self.send_response(200)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body[: len(body) // 2])
                self.close_connection = True
            else:
                self.send(body, **headers)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield here, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def models(hub: tuple[Hub, str], tmp_path: Path) -> Path:
    """Publishes tiny weights in fp32, with files that are not needed. Returns a map that names them."""
    root, published = tmp_path / "weights", hub[0].root
    (published / "acme").mkdir(parents=True)
    for name in ("WanPipeline", "WanVACEPipeline"):
        shutil.move(make(name, tmp_path), published / "acme" / name)
        (published / "acme" / name / "transformer" / "pytorch_model.bin").write_bytes(b"not needed")
    (published / "acme" / "depth").parent.mkdir(exist_ok=True)
    shutil.move(make_depth(tmp_path), published / "acme" / "depth")
    (published / "acme" / "loras").mkdir()
    lora(published / "acme" / "loras")
    lora(published / "acme" / "loras", "other.safetensors")
    text = str(root / "WanPipeline")
    rows: dict[str, dict[str, Any]] = {
        "text": fields("WanPipeline", root) | {"text": text, "loras": [{"file": str(root / "loras/few.safetensors")}]},
        "vace": fields("WanVACEPipeline", root)
        | {"text": text, "control": {"kind": "depth", "model": str(root / "depth")}},
    }
    for row in rows.values():
        row["precision"] = "bf16"
    path = tmp_path / "models.yaml"
    path.write_text(
        yaml.safe_dump(
            {
                "cards": [{"name": "L40S", "gib": 44, "teraflops": 150}],
                "hub": {str(root / name): f"acme/{name}@main" for name in os.listdir(published / "acme")},
                "pipelines": rows,
                "models": {"gen-pro-t2v": {"pipeline": "text"}, "gen-2.5": {"pipeline": "vace"}},
            }
        )
    )
    return path


def prepare(url: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "cutroom_engine.prepare", *arguments]
    env = os.environ | {"HF_ENDPOINT": url, "HF_HUB_DISABLE_XET": "1", "PATH": "/none"}
    return subprocess.run(
        command, env=env, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False, timeout=300
    )


def test_download_fetches_what_the_card_needs(hub: tuple[Hub, str], models: Path, tmp_path: Path) -> None:
    here, url = hub
    # The client writes 10 MiB at a time.
    large = here.root / "acme/WanPipeline/vae/large.txt"
    large.write_bytes(bytes(range(256)) * (3 << 15))
    here.breaks = "vae/large.txt"
    done = prepare(url, "--download", str(models), "--card", "L40S")
    assert done.returncode == 0, done.stderr
    assert "acme/WanPipeline: apache-2.0, 0.0 GB to fetch" in done.stdout
    assert re.search(r"GB to fetch, [0-9.]+ GB free\nLoading needs up to [0-9]+ GB", done.stdout)
    assert done.stdout.endswith("All weights are on the disk.\n")
    assert not [name for name in here.fetched if name.endswith((".bin", "other.safetensors"))]
    assert not [name for name in here.fetched if name.startswith("acme/WanVACEPipeline/text_encoder")]
    assert here.ranges == ["bytes=10485760-"], "the broken download was not continued"
    assert (tmp_path / "weights/WanPipeline/vae/large.txt").read_bytes() == large.read_bytes()
    # The weights of pipelines are converted to bf16, and they work.
    before = here.root / "acme/WanVACEPipeline/transformer/diffusion_pytorch_model.safetensors"
    after = tmp_path / "weights/WanVACEPipeline/transformer/diffusion_pytorch_model.safetensors"
    assert {str(tensor.dtype) for tensor in load_file(after).values()} == {"torch.bfloat16"}
    assert after.stat().st_size < 0.7 * before.stat().st_size
    chosen = choose(read_model_file(models, "gen"), None)
    for row in chosen.pipelines.values():
        assert missing(row) == []
        assert len(Loader("cpu").load(row).run(shot(row.class_name), nothing, nothing)) == 9
    # A second run fetches nothing.
    here.fetched.clear()
    again = prepare(url, "--download", str(models), "--card", "L40S")
    assert again.returncode == 0, again.stderr
    assert here.fetched == []


@pytest.mark.parametrize("license", ["cc-by-nc-4.0", "other"])
def test_licenses_that_may_forbid_commercial_use_need_a_flag(hub: tuple[Hub, str], models: Path, license: str) -> None:
    here, url = hub
    here.licenses["acme/depth"] = license
    refused = prepare(url, "--download", str(models), "--card", "L40S")
    assert refused.returncode == 1
    assert f"acme/depth ({license})" in refused.stderr
    assert refused.stderr.count("\n") == 1
    assert here.fetched == []
    accepted = prepare(url, "--download", str(models), "--card", "L40S", "--non-commercial")
    assert accepted.returncode == 0, accepted.stderr


def test_unreachable_hub_is_reported(models: Path) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    done = prepare(url, "--download", str(models), "--card", "L40S")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert f"The download from {url} failed: " in done.stderr


def test_impossible_downloads_are_reported(hub: tuple[Hub, str], models: Path) -> None:
    here, url = hub
    text = models.read_text()
    (here.root / "acme/depth/preprocessor_config.json").unlink()
    for arguments, changed, says in (
        ([], text, "nvidia-smi lists no card"),
        (["--card", "L4"], text, "--card: L4 is not one of L40S"),
        (["--card", "L40S"], text.replace("acme/loras@main", "acme/none@main"), " failed: "),
        (["--card", "L40S"], text.replace("few.safetensors", "none.safetensors"), "acme/loras has none of the files"),
        (["--card", "L40S"], text, "has no preprocessor_config.json"),
    ):
        models.write_text(changed)
        done = prepare(url, "--download", str(models), *arguments)
        assert done.returncode == 1
        assert says in done.stderr.splitlines()[-1]
