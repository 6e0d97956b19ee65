"""Tests the real program: settings, HTTP, pipelines and files."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest

from ..conftest import Ask, Clip, free_port
from ..test_media import facts
from .tiny import make_all

Start = Callable[..., tuple[subprocess.Popen[bytes], httpx2.Client]]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_all(tmp_path_factory.mktemp("weights"))


@pytest.fixture(scope="module")
def start(models: Path) -> Iterator[Start]:
    started: list[subprocess.Popen[bytes]] = []

    def begin(
        program: tuple[str, ...] = ("-m", "cutroom_engine"), **settings: str
    ) -> tuple[subprocess.Popen[bytes], httpx2.Client]:
        address = f"127.0.0.1:{free_port()}"
        env = {"CUTROOM_ENGINE_MODELS": str(models), "CUTROOM_ENGINE_DEVICE": "cpu", "CUTROOM_ENGINE_ADDR": address}
        process = subprocess.Popen(
            [sys.executable, *program], env=os.environ | env | settings, cwd=Path(__file__).parents[2]
        )
        started.append(process)
        client = httpx2.Client(base_url=f"http://{address}", timeout=120)
        for _ in range(6000):
            assert process.poll() is None, "the server ended"
            try:
                if client.get("/healthz").status_code == 200:
                    return process, client
            except httpx2.TransportError:
                time.sleep(0.2)
        raise AssertionError("the server does not start")

    yield begin
    for process in started:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def client(start: Start) -> httpx2.Client:
    return start()[1]


def lines_of(client: httpx2.Client, body: dict[str, Any]) -> list[dict[str, Any]]:
    with client.stream("POST", "/v1/runs", json=body) as answer:
        return [json.loads(line) for line in answer.iter_lines()]


@pytest.mark.parametrize(
    ("model", "kind", "referenced"),
    [
        ("gen-restyle-2", "restyle", False),
        ("gen-restyle-2", "restyle", True),
        ("gen-2.5", "edit", False),
        ("gen-2.5", "edit", True),
        ("gen-vton-3.6", "try-on", True),
        ("gen-clip", "clip", False),
        ("gen-pro-t2v", "text-to-video", False),
    ],
)
def test_every_kind_of_edit(
    client: httpx2.Client, clip: Clip, ask: Ask, picture: Path, model: str, kind: str, referenced: bool
) -> None:
    data = None if kind == "text-to-video" else clip("testsrc2=s=96x64:r=10:d=1.2")
    request = ask(
        data,
        model=model,
        kind=kind,
        duration=1.2,
        reference=picture if referenced else None,
        options={"self_anchor": True},
    )
    lines = lines_of(client, request.model_dump())
    assert "result" in lines[-1], lines[-1]
    found = facts(Path(request.output))
    assert (found["width"], found["height"], found["nb_frames"]) == (96, 64, "9" if data is None else "12")
    assert {line["stage"] for line in lines[:-1]} >= {"wait", "load", "denoise", "encode"}


def test_disconnecting_caller_frees_capacity(client: httpx2.Client, clip: Clip, ask: Ask) -> None:
    long = ask(clip("testsrc2=s=96x64:r=10:d=30"), duration=30)
    with client.stream("POST", "/v1/runs", json=long.model_dump()) as answer:
        for line in answer.iter_lines():
            if json.loads(line)["progress"] > 0:
                break
    assert "result" in lines_of(client, ask(clip()).model_dump())[-1]


def test_concurrent_callers_are_served(client: httpx2.Client, clip: Clip, ask: Ask) -> None:
    requests = [ask(clip()) for _ in range(3)]
    with ThreadPoolExecutor(3) as pool:
        answers = list(pool.map(lambda request: lines_of(client, request.model_dump()), requests))
    assert all("result" in lines[-1] for lines in answers)
    assert len({Path(request.output).read_bytes() for request in requests}) == 1


def test_image_runs_during_a_video(start: Start, clip: Clip, ask: Ask, picture: Path) -> None:
    """The image ends long before the video, whose result does not change."""
    _, client = start(CUTROOM_ENGINE_MEMORY="1024GiB")
    data = clip("testsrc2=s=96x64:r=10:d=6")
    plain, video = ask(data, duration=6), ask(data, duration=6)
    assert "result" in lines_of(client, plain.model_dump())[-1]
    still = ask(picture, mime="image/png", model="gen-image-2", kind="image")
    still = still.model_copy(update={"output": still.folder + "/output.png"})
    with client.stream("POST", "/v1/runs", json=video.model_dump()) as answer:
        lines = answer.iter_lines()
        assert any(0 < json.loads(line)["progress"] < 0.2 for line in lines)
        assert "result" in lines_of(client, still.model_dump())[-1]
        assert "cutroom_engine_unfinished_runs 1.0" in client.get("/metrics").text, "the video ended first"
        assert "result" in json.loads(list(lines)[-1])
    assert Path(video.output).read_bytes() == Path(plain.output).read_bytes()


def test_server_survives_invalid_input(client: httpx2.Client, clip: Clip, ask: Ask, tmp_path: Path) -> None:
    noise = tmp_path / "noise.mp4"
    noise.write_bytes(os.urandom(10_000))
    assert lines_of(client, ask(noise).model_dump())[-1]["error"]["code"] == "engine_error"
    assert "result" in lines_of(client, ask(clip()).model_dump())[-1]


def test_restarted_server_gives_the_same_result(client: httpx2.Client, start: Start, clip: Clip, ask: Ask) -> None:
    first = ask(clip())
    assert "result" in lines_of(client, first.model_dump())[-1]
    process, other = start()
    with other.stream("POST", "/v1/runs", json=ask(clip()).model_dump()) as answer:
        lines = answer.iter_lines()
        next(lines)
        process.send_signal(signal.SIGKILL)
        process.wait()
    process, other = start()
    again = ask(clip())
    assert "result" in lines_of(other, again.model_dump())[-1]
    assert Path(first.output).read_bytes() == Path(again.output).read_bytes()
    process.send_signal(signal.SIGTERM)
    assert process.wait(120) in (0, -signal.SIGTERM)


# The program with a transformer that fails in the same way as a broken card.
_LOSES_ITS_DEVICE = """
import sys
import diffusers, torch
from cutroom_engine.__main__ import main

def forward(*_, **__):
    raise torch.AcceleratorError("CUDA error: an illegal memory access was encountered")

diffusers.WanVACETransformer3DModel.forward = forward
sys.exit(main())
"""


def test_server_with_lost_device_requests_restart(start: Start, clip: Clip, ask: Ask) -> None:
    process, client = start(("-c", _LOSES_ITS_DEVICE))
    error = lines_of(client, ask(clip()).model_dump())[-1]["error"]
    assert (error["code"], error["retryable"]) == ("engine_error", True)
    assert process.wait(120) == os.EX_TEMPFAIL


@pytest.mark.parametrize(
    ("variable", "says"),
    [
        ("CUTROOM_ENGINE_ADDR=here", "CUTROOM_ENGINE_ADDR"),
        ("CUTROOM_ENGINE_MODELS=/none.yaml", "/none.yaml: No such file"),
        # No machine has 100 GPUs. The server must not edit on the CPU instead.
        ("CUTROOM_ENGINE_DEVICE=cuda:99", "CUTROOM_ENGINE_DEVICE: cuda:99 cannot be used"),
    ],
)
def test_wrong_setting_is_reported_in_one_line(variable: str, says: str) -> None:
    name, value = variable.split("=")
    ended = subprocess.run(
        [sys.executable, "-m", "cutroom_engine"],
        env=os.environ | {name: value},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (1, "")
    assert says in ended.stderr
    assert ended.stderr.count("\n") == 1
