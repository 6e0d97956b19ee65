"""Tests that files are read and written correctly."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from cutroom_engine.protocol import Input
from cutroom_engine.read import image, video_frames
from cutroom_engine.write import VideoWriter, write_image

from .conftest import Clip


def facts(path: Path) -> dict[str, Any]:
    out = subprocess.run(
        ["ffprobe", "-v", "error", "-show_streams", "-of", "json", str(path)], check=True, capture_output=True
    )
    (stream,) = json.loads(out.stdout)["streams"]
    return dict(stream)


def read(path: Path, width: int = 96, height: int = 64) -> list[np.ndarray]:
    return list(video_frames(Input(path=str(path), mime="video/mp4"), width, height))


def difference(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.abs(a.astype(int) - b.astype(int)).mean())


def test_frames_match_ffmpeg(clip: Clip) -> None:
    filters = "scale=64:48:flags=bicubic"
    command = [
        "ffmpeg",
        "-v",
        "error",
        "-i",
        str(path := clip()),
        "-vf",
        filters,
        "-f",
        "rawvideo",
        "-pix_fmt",
        "rgb24",
    ]
    out = subprocess.run([*command, "-"], check=True, capture_output=True).stdout
    want = np.frombuffer(out, dtype=np.uint8).reshape(-1, 48, 64, 3)
    frames = read(path, 64, 48)
    assert len(frames) == len(want) == 5
    assert max(map(difference, frames, want)) < 4


def test_result_keeps_its_colors_and_length(tmp_path: Path) -> None:
    colors = np.random.default_rng(0).integers(0, 255, (5, 3))
    frames = [np.broadcast_to(color, (64, 96, 3)).astype(np.uint8) for color in colors]
    with VideoWriter(str(tmp_path / "out.mp4"), 96, 64, 10) as writer:
        for frame in frames:
            writer.write(frame)
    found = facts(tmp_path / "out.mp4")
    assert (found["codec_name"], found["pix_fmt"], found["color_range"]) == ("h264", "yuv420p", "tv")
    assert (found["width"], found["height"], found["nb_frames"], found["r_frame_rate"]) == (96, 64, "5", "10/1")
    assert {found[name] for name in ("color_space", "color_transfer", "color_primaries")} == {"bt709"}
    assert max(map(difference, frames, read(tmp_path / "out.mp4"))) < 3


def test_image_is_written_and_read(tmp_path: Path) -> None:
    path = str(tmp_path / "out.png")
    drawn = np.random.default_rng(0).integers(0, 255, (64, 96, 3), dtype=np.uint8)
    write_image(path, drawn)
    with Image.open(path) as written:
        assert (written.size, written.mode, written.format) == ((96, 64), "RGB", "PNG")
    assert np.array_equal(np.asarray(image(Input(path=path, mime="image/png"))), drawn)
