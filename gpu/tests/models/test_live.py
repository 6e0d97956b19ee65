"""Tests live pictures with pipelines of the real classes and tiny models, on the CPU."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cutroom_engine import live_wire as wire
from cutroom_engine.frames import live_sizes
from cutroom_engine.live_diffusion import LiveDiffusion, load_live
from cutroom_engine.model_map import LivePipelineRow
from cutroom_engine.protocol import RunCancelled

from ..live_client import LiveClient, picture
from .test_program import Start, models, start
from .tiny import live_row, make_tiny_vae

__all__ = ["models", "start"]

SIZE = 72, 40


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("live")


def load(folder: Path, **changes: Any) -> LiveDiffusion:
    row = live_row(folder, pixels=64 * 64, **changes)
    return load_live(LivePipelineRow.model_validate(row), "cpu")


def noise(width: int = SIZE[0], height: int = SIZE[1], narrow: bool = False) -> wire.Picture:
    luma, chroma = wire.planes_of(width, height)
    drawn = np.random.default_rng(0).integers(16, 235, luma + 2 * chroma, dtype=np.uint8)
    return wire.Picture(3, width, height, narrow, drawn.tobytes())


def passes() -> None:
    """Lets the edit continue."""


def test_frames_are_edited(folder: Path) -> None:
    model = load(folder)
    winter, _ = model.encode("a quiet winter evening")
    empty, _ = model.encode("")
    made = model.edit(noise(), winter, 7, passes)
    assert (made.number, made.width, made.height, made.narrow) == (3, *SIZE, False)
    # The result depends on the prompt, the seed and the picture, and on nothing else.
    others = [
        model.edit(noise(), empty, 7, passes),
        model.edit(noise(), winter, 8, passes),
        model.edit(picture(3, *SIZE), winter, 7, passes),
    ]
    assert model.edit(noise(), winter, 7, passes) == made
    assert [other.planes != made.planes for other in others] == [True, True, True]


@pytest.mark.parametrize(
    ("width", "height", "narrow"), [(72, 40, True), (40, 72, False), (1, 1, False), (75, 33, True), (1920, 1, False)]
)
def test_frames_may_have_any_shape(folder: Path, width: int, height: int, narrow: bool) -> None:
    model = load(folder)
    made = model.edit(noise(width, height, narrow), model.encode("winter")[0], 7, passes)
    assert (made.width, made.height) == live_sizes(width, height, 8, 64 * 64)[1]
    luma, chroma = wire.planes_of(made.width, made.height)
    assert (len(made.planes), made.narrow) == (luma + 2 * chroma, narrow)
    if narrow:
        assert 15 <= min(made.planes[:luma]) <= max(made.planes[:luma]) <= 236


def test_small_vae_replaces_the_full_one(folder: Path) -> None:
    model, whole = load(folder, vae=make_tiny_vae(folder)), load(folder)
    made = [one.edit(noise(), one.encode("winter")[0], 7, passes) for one in (model, whole)]
    assert (made[0].width, made[0].height) == SIZE
    assert made[0] != made[1]


def test_colors_are_unchanged(folder: Path) -> None:
    """The model converts the planes to red, green and blue, and back."""
    model = load(folder)
    for narrow in (False, True):
        luma, chroma = wire.planes_of(*SIZE)
        planes = bytes([90]) * luma + bytes([110]) * chroma + bytes([150]) * chroma
        rgb = model._colors(wire.Picture(1, *SIZE, narrow, planes), (64, 64))
        assert model._planes(rgb, SIZE, narrow) == pytest.approx(planes, abs=1)


def test_edit_can_be_cancelled_within_a_step(folder: Path) -> None:
    model = load(folder, steps=40, strength=1.0)
    prompt, _ = model.encode("winter")
    calls = 0

    def leaves() -> None:
        nonlocal calls
        calls += 1
        if calls == 4:
            raise RunCancelled

    with pytest.raises(RunCancelled):
        model.edit(noise(), prompt, 7, leaves)
    assert calls == 4
    assert model.edit(noise(), prompt, 7, passes).number == 3


def test_prompts_are_cached_and_long_ones_are_reported(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = load(folder)
    encoded: list[str] = []
    monkeypatch.setattr(model, "_encoded", lambda prompt: encoded.append(prompt) or {})
    for prompt in ("winter", "summer", "winter", *(f"a {number}" for number in range(32)), "winter"):
        model.encode(prompt)
    assert encoded.count("winter") == 2
    assert encoded.count("summer") == 1
    assert "77 tokens" in model.encode("a quiet winter evening. " * 20)[1]


def test_warming_up_calls_the_models(folder: Path) -> None:
    calls = 0

    def counts() -> None:
        nonlocal calls
        calls += 1

    load(folder).warm(counts)
    assert calls > 10


def test_program_edits_live(start: Start) -> None:
    """Runs live sessions in the real program, concurrently and with health checks."""
    _, client = start()
    port = client.base_url.port
    assert port is not None
    for _ in range(3000):
        if client.get(wire.PATH).json()["models"]["gen-2.5"]["ready"]:
            break
        time.sleep(0.2)
    first, second = LiveClient(port), LiveClient(port)
    for session in (first, second):
        assert session.next() == {"ready": {"engine": "StableDiffusionImg2ImgPipeline"}}
        session.wish(1, "a quiet winter evening")
        assert "error" not in session.next()["set"]
    made = []
    for number in range(5):
        for session in (first, second):
            session.show(noise())
            made.append(session.next())
        assert made[-1].number == 3, number
    assert len({bytes(one.planes) for one in made}) == 1
    assert client.get("/healthz").status_code == 200
    first.leave()
    second.leave()
