"""Helpers that the tests share: clips, requests, and models that only change colors."""

from __future__ import annotations

import itertools
import random
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cutroom_engine.cards import Card, choose
from cutroom_engine.frames import Frame
from cutroom_engine.live import Live, LiveModel
from cutroom_engine.model_map import LiveMap, LivePipelineRow, ModelMap, read_model_file
from cutroom_engine.protocol import RunRequest
from cutroom_engine.styles import Shot

Clip = Callable[..., Path]
Ask = Callable[..., RunRequest]


def ffmpeg(*arguments: str) -> None:
    subprocess.run(["ffmpeg", "-nostdin", "-v", "error", "-y", *arguments], check=True)


@pytest.fixture
def clip(tmp_path: Path) -> Clip:
    """Creates clips: by default half a second in 96x64, at 10 frames per second."""
    numbers = itertools.count()

    def make(video: str = "testsrc2=s=96x64:r=10:d=0.5") -> Path:
        path = tmp_path / f"clip{next(numbers)}.mp4"
        ffmpeg("-f", "lavfi", "-i", video, "-c:v", "libx264", "-pix_fmt", "yuv420p", str(path))
        return path

    return make


@pytest.fixture
def ask(tmp_path: Path) -> Ask:
    """Creates requests, each with its own folder."""
    numbers = itertools.count()

    def make(
        data: Path | None = None, *, mime: str = "video/mp4", reference: Path | None = None, **changes: Any
    ) -> RunRequest:
        folder = tmp_path / f"run{next(numbers)}"
        folder.mkdir()
        fields: dict[str, Any] = {
            "job": "job_1",
            "model": "gen-2.5",
            "kind": "edit",
            "prompt": "winter",
            "seed": 7,
            "width": 96,
            "height": 64,
            "fps": 10,
            "duration": 0.5,
            "folder": str(folder),
            "output": str(folder / "output.mp4"),
        }
        if data is not None:
            fields["data"] = {"path": str(data), "mime": mime}
        if reference is not None:
            fields["reference"] = {"path": str(reference), "mime": "image/png"}
        return RunRequest.model_validate(fields | changes)

    return make


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    """Returns the path of a PNG."""
    path = tmp_path / "picture.png"
    ffmpeg("-f", "lavfi", "-i", "testsrc2=s=48x32", "-frames:v", "1", str(path))
    return path


def model_map(*, teraflops: float | None = None, **pipeline: Any) -> ModelMap:
    """Returns a map with one model of each kind, whose pipelines have small windows."""
    window = {"frames": 9, "overlap": 3, "step": 4}
    row = {"shape": "wan2.1-vace-1.3b", "steps": 2, "text": "/encoder", "window": window} | pipeline
    line = {"class": "WanVACEPipeline", "control": {"kind": "line"}}
    return ModelMap.model_validate(
        {
            "teraflops": teraflops,
            "pipelines": {
                "edit": {**line, "weights": "/edit", **row},
                "vace": {**line, "weights": "/vace", **row},
                "text": {"class": "WanPipeline", "weights": "/text", **row},
                "image": {"class": "QwenImageEditPlusPipeline", "weights": "/image", **row},
            },
            "models": {
                "gen-2.5": {"pipeline": "edit"},
                "gen-2.1": {"pipeline": "vace", "first": "image"},
                "gen-vton-3.6": {"pipeline": "vace"},
                "gen-pro-t2v": {"pipeline": "text"},
                "gen-image-2": {"pipeline": "image"},
            },
        }
    )


def read_model_map(
    path: Path, family: str, weights: str = "", card: Card | None = None, memory: int | None = None
) -> ModelMap:
    return choose(read_model_file(path, family, weights), card, memory)


def no_live() -> Live:
    def load(_: LivePipelineRow) -> LiveModel:
        raise AssertionError("there are no rows")

    return Live(LiveMap(), load)


def free_port() -> int:
    """Returns a free port below the range from which the system assigns ports, so that no other program gets it."""
    while True:
        try:
            with socket.create_server(("127.0.0.1", random.randrange(10000, 32768))) as listener:
                return int(listener.getsockname()[1])
        except OSError:
            continue


class Inverter:
    """A model that inverts pictures in two steps, and records its shots."""

    def __init__(self) -> None:
        self.shots: list[Shot] = []
        self.closed = False

    def run(self, shot: Shot, on_step: Callable[[float], None], check: Callable[[], None]) -> list[Frame]:
        self.shots.append(shot)
        on_step(0.5)
        on_step(1.0)
        if not shot.frames:
            grey = np.linspace(0, 255, shot.length).astype(np.uint8)
            return [np.full((shot.height, shot.width, 3), value, dtype=np.uint8) for value in grey]
        return [255 - frame for frame in shot.frames]

    def close(self) -> None:
        self.closed = True
