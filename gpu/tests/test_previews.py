"""Tests previews, and the runs that send them."""

from __future__ import annotations

import base64
import io
import queue
import threading
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from cutroom_engine.frames import Frame
from cutroom_engine.previews import Draw, Previews
from cutroom_engine.protocol import RunCancelled

from .conftest import Ask, Clip, Inverter
from .test_runs import MakeRunner, world  # noqa: F401  # a fixture

ALWAYS, ONCE = 1e-9, 3600.0


def red(height: int = 6, width: int = 8) -> Frame:
    return np.tile(np.array([200, 20, 20], dtype=np.uint8), (height, width, 1))


def threads() -> bool:
    return any(thread.name == "write behind" for thread in threading.enumerate())


@pytest.mark.parametrize(
    ("size", "wanted"),
    [((1280, 720), (320, 180)), ((90, 160), (90, 160)), ((8192, 2), (320, 1)), ((720, 1280), (180, 320))],
)
def test_preview_is_a_small_jpeg_with_the_results_aspect_ratio(size: tuple[int, int], wanted: tuple[int, int]) -> None:
    sent: queue.Queue[bytes] = queue.Queue()
    with Previews(ONCE, *size, sent.put) as previews:
        previews.offer(lambda: red)
        content = sent.get(timeout=120)
        previews.offer(lambda: red)
    assert sent.empty(), "the next was not due"
    assert len(content) < 128 << 10
    with Image.open(io.BytesIO(content), formats=["JPEG"]) as picture:
        assert picture.size == wanted
        shown = picture.getpixel((0, 0))
        assert isinstance(shown, tuple)
        assert max(abs(a - b) for a, b in zip(shown, (200, 20, 20), strict=True)) < 12
    assert not threads()


def test_preview_begins_only_after_the_last_is_done() -> None:
    sent: queue.Queue[bytes] = queue.Queue()
    begun: list[int] = []
    go_on = threading.Event()

    def slow() -> Frame:
        go_on.wait(120)
        return red()

    def begin(number: int, draw: Draw) -> Draw:
        begun.append(number)
        return draw

    with Previews(ALWAYS, 64, 48, sent.put) as previews:
        previews.offer(lambda: begin(0, slow))
        previews.offer(lambda: begin(1, red))  # the first preview is still being drawn
        go_on.set()
        sent.get(timeout=120)
        while sent.empty():
            previews.offer(lambda: begin(2, red))
    assert set(begun) == {0, 2}


@pytest.mark.parametrize("where", ["begin", "draw", "send"])
def test_failed_preview_is_the_last(where: str) -> None:
    tries: queue.Queue[str] = queue.Queue()

    def fail(at: str) -> None:
        tries.put(at)
        if at == where:
            raise RuntimeError("CUDA error")

    def draw() -> Frame:
        fail("draw")
        return red()

    def begin() -> Draw:
        fail("begin")
        return draw

    with Previews(ALWAYS, 64, 48, lambda _: fail("send")) as previews:
        previews.offer(begin)
        while tries.get(timeout=120) != where:
            pass
        while not previews._over:
            previews.offer(begin)
        while not tries.empty():
            tries.get()
        previews.offer(begin)
    assert tries.empty(), "it went on"


def test_cancelled_run_ends_the_preview_thread() -> None:
    def end() -> None:
        with Previews(ALWAYS, 64, 48, lambda _: None) as previews:
            previews.offer(lambda: red)
            raise RunCancelled

    with pytest.raises(RunCancelled):
        end()
    assert not threads()


@pytest.mark.parametrize("kind", ["edit", "image"])
def test_run_sends_previews_on_request(
    world: MakeRunner,  # noqa: F811  # the fixture from test_runs
    ask: Ask,
    clip: Clip,
    picture: Path,
    kind: str,
) -> None:
    """Clips and images have previews. With or without them, the result is the same."""
    image = {"kind": "image", "model": "gen-image-2", "mime": "image/png", "fps": 0, "duration": 0}
    source = clip() if kind == "edit" else picture
    place, results = world(Inverter), []
    for every in (0.0, ALWAYS):
        request = ask(source, **(image if kind == "image" else {}), preview_every=every)
        for _ in range(1000):
            *lines, last = place.run(request)
            assert "result" in last
            shown = [line for line in lines if "preview" in line]
            # A run may end before its first preview is drawn. Then it sends no preview, so try again.
            if shown or not every:
                break
        assert bool(shown) == bool(every)
        for line in shown:
            assert line.keys() == {"progress", "stage", "preview"}
            with Image.open(io.BytesIO(base64.b64decode(line["preview"], validate=True)), formats=["JPEG"]) as preview:
                assert preview.size == (96, 64)
        results.append(Path(request.output).read_bytes())
    assert results[0] == results[1]
    assert not threads()
