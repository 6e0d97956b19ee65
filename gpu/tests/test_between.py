from __future__ import annotations

import numpy as np
import pytest
from PIL import Image, ImageFilter

from cutroom_engine.between import interpolate
from cutroom_engine.frames import Frame, retime

WIDTH, HEIGHT = 160, 96


def texture() -> Frame:
    noise = np.random.default_rng(3).integers(0, 255, (HEIGHT, WIDTH + 120, 3), dtype=np.uint8)
    soft = np.asarray(Image.fromarray(noise).filter(ImageFilter.GaussianBlur(3)), dtype=np.float32)
    return ((soft - soft.min()) * 255 / (soft.max() - soft.min())).astype(np.uint8)


def panned(offsets: list[int]) -> list[Frame]:
    """Returns the pictures of a camera that moves to the right."""
    whole = texture()
    return [np.ascontiguousarray(whole[:, at : at + WIDTH]) for at in offsets]


def apart(a: list[Frame], b: list[Frame]) -> float:
    """Returns the mean difference between two pictures, without the edges, where new content appears."""
    return float(np.mean([np.abs(x.astype(int) - y)[16:-16, 24:-24].mean() for x, y in zip(a, b, strict=True)]))


@pytest.mark.parametrize(("rate", "fps", "count"), [(16, 20, 25), (16, 25, 31), (15, 20, 20), (8, 25, 3), (16, 20, 1)])
def test_requested_number_of_frames_is_made(rate: int, fps: int, count: int) -> None:
    needed = max(1, -(-count * rate // fps))
    made = list(interpolate(iter(panned([4 * i for i in range(needed)])), rate, fps, count))
    assert len(made) == count
    assert {frame.shape for frame in made} == {(HEIGHT, WIDTH, 3)}
    assert {frame.dtype for frame in made} == {np.dtype(np.uint8)}


def test_motion_is_interpolated() -> None:
    """At twice the rate, every other frame must show the motion halfway between its neighbors."""
    true = panned([4 * i for i in range(19)])
    made = list(interpolate(iter(true[::2]), 10, 20, 19))
    repeated = list(retime(iter(true[::2]), 10, 20, 19))
    assert apart(made, true) < apart(repeated, true) / 2


def test_frames_are_not_mixed_across_cuts() -> None:
    black, white = (np.full((HEIGHT, WIDTH, 3), value, dtype=np.uint8) for value in (16, 235))
    made = list(interpolate(iter([black] * 8 + [white] * 8), 10, 20, 30))
    assert all(min(abs(int(frame.mean()) - 16), abs(int(frame.mean()) - 235)) < 6 for frame in made)


def test_only_needed_frames_are_read() -> None:
    taken = 0

    def frames() -> object:
        nonlocal taken
        for frame in panned([0] * 40):
            taken += 1
            yield frame

    made = interpolate(frames(), 16, 20, 50)  # type: ignore[arg-type]
    for number in range(20):
        next(made)
        assert taken <= number + 6
