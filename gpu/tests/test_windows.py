from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from PIL import Image

from cutroom_engine.frames import Frame, live_sizes, retime, shown, working_size
from cutroom_engine.windows import Window, edit_in_windows


def numbered(count: int) -> list[Frame]:
    return [np.full((2, 2, 3), i, dtype=np.uint8) for i in range(count)]


@pytest.mark.parametrize(
    ("window", "total", "plan"),
    [
        (Window(9, 3, 4), 1, [(0, 1)]),
        (Window(9, 3, 4), 9, [(0, 9)]),
        (Window(9, 3, 4), 10, [(0, 9), (6, 4)]),
        (Window(9, 3, 4), 15, [(0, 9), (6, 9)]),
        (Window(9, 3, 4), 16, [(0, 9), (6, 9), (12, 4)]),
        (Window(81, 9, 4), 100, [(0, 57), (48, 52)]),  # two windows of about the same length
        (Window(81, 0, 4), 162, [(0, 81), (81, 81)]),
        (Window(1, 0, 1), 3, [(0, 1), (1, 1), (2, 1)]),
    ],
)
def test_plan_covers_the_clip(window: Window, total: int, plan: list[tuple[int, int]]) -> None:
    assert window.plan(total) == plan


@pytest.mark.parametrize(
    "window", [Window(9, 3, 4), Window(81, 9, 4), Window(17, 8, 4), Window(5, 0, 1), Window(121, 1, 8)]
)
def test_every_plan_is_valid(window: Window) -> None:
    for total in range(1, 400):
        plan = window.plan(total)
        assert plan[0][0] == 0
        assert sum(plan[-1]) == total
        for (start, length), (following, _) in pairwise(plan):
            assert start + length - following == window.overlap
        assert all(1 <= length <= window.frames for _, length in plan)


@pytest.mark.parametrize(("length", "valid"), [(1, 5), (5, 5), (6, 9), (9, 9)])
def test_lengths_are_supported_by_models(length: int, valid: int) -> None:
    assert Window(9, 3, 4).valid(length) == valid


@pytest.mark.parametrize("bad", [(8, 3, 4), (9, 9, 4), (9, -1, 4), (0, 0, 1), (9, 3, 0)])
def test_invalid_windows_are_rejected(bad: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match=r"frames|overlap"):
        Window(*bad)


@pytest.mark.parametrize("total", [1, 2, 8, 9, 10, 15, 16, 50])
def test_clip_keeps_its_frames_and_their_order(total: int) -> None:
    lengths = []

    def edit(_: int, frames: list[Frame], before: list[Frame]) -> list[Frame]:
        lengths.append(len(frames))
        return list(frames)

    edited = list(edit_in_windows(iter(numbered(total)), total, Window(9, 3, 4), edit))
    assert [int(frame[0, 0, 0]) for frame in edited] == list(range(total))
    assert all(length in (5, 9) for length in lengths)


def test_windows_fade_into_each_other() -> None:
    shown = []

    def edit(number: int, frames: list[Frame], before: list[Frame]) -> list[Frame]:
        shown.append([int(frame[0, 0, 0]) for frame in before])
        return [np.full((2, 2, 3), 100 * number, dtype=np.uint8) for _ in frames]

    edited = list(edit_in_windows(iter(numbered(15)), 15, Window(9, 3, 4), edit))
    assert [int(frame[0, 0, 0]) for frame in edited] == [0] * 6 + [25, 50, 75] + [100] * 6
    assert shown == [[], [0, 0, 0]]


def test_long_clip_is_never_completely_in_memory() -> None:
    taken = 0

    def frames() -> object:
        nonlocal taken
        for frame in numbered(200):
            taken += 1
            yield frame

    edited = edit_in_windows(frames(), 200, Window(9, 3, 4), lambda _, window, __: window)  # type: ignore[arg-type]
    for given in range(1, 201):
        next(edited)
        assert taken <= given + 9


def test_model_with_too_few_frames_is_an_error() -> None:
    with pytest.raises(ValueError, match="made 1 frames instead of 5"):
        list(edit_in_windows(iter(numbered(5)), 5, Window(9, 3, 4), lambda _, window, __: window[:1]))


@pytest.mark.parametrize(
    ("rate", "fps", "count", "want"),
    [
        (10, 10, 4, [0, 1, 2, 3]),
        (5, 10, 6, [0, 0, 1, 1, 2, 2]),
        (20, 10, 3, [0, 2, 4]),
        (24, 25, 5, [0, 0, 1, 2, 3]),
        (10, 10, 8, [0, 1, 2, 3, 4, 5, 5, 5]),
    ],
)
def test_frame_rate_is_converted(rate: int, fps: int, count: int, want: list[int]) -> None:
    assert [int(frame[0, 0, 0]) for frame in retime(iter(numbered(6)), rate, fps, count)] == want


@pytest.mark.parametrize(
    ("size", "multiple", "pixels", "want"),
    [
        ((1280, 704), 32, None, (1280, 704)),
        ((1280, 720), 32, None, (1280, 704)),
        ((1280, 720), 16, None, (1280, 720)),
        ((720, 1280), 32, None, (704, 1280)),
        ((1280, 720), 16, 832 * 480, (832, 464)),
        ((2, 2), 16, None, (16, 16)),
        ((1280, 2), 16, None, (1280, 16)),
    ],
)
def test_working_size_is_supported_by_the_model(
    size: tuple[int, int], multiple: int, pixels: int | None, want: tuple[int, int]
) -> None:
    assert working_size(*size, multiple, pixels) == want
    if pixels:
        assert want[0] * want[1] <= pixels


@pytest.mark.parametrize(
    ("size", "want"),
    [
        ((640, 480), (640, 480)),
        ((64, 512), (64, 512)),
        ((64, 48), (86, 64)),
        ((1, 1), (64, 64)),
        ((1280, 20), (1280, 160)),
        ((3, 4000), (500, 4000)),
        ((2, 20), (64, 427)),
    ],
)
def test_pictures_are_padded_and_enlarged_for_pipelines(size: tuple[int, int], want: tuple[int, int]) -> None:
    picture = shown(Image.new("RGB", size, "red"))
    assert picture.size == want
    red, *others = picture.getpixel((want[0] // 2, want[1] // 2))
    assert red == 255
    assert max(others) < 10


@pytest.mark.parametrize(
    ("size", "works", "result"),
    [
        ((640, 360), (640, 360), (640, 360)),
        ((1280, 720), (680, 384), (683, 384)),
        ((720, 1280), (384, 680), (384, 683)),
        ((512, 512), (512, 512), (512, 512)),
        ((160, 90), (160, 88), (160, 90)),
        ((1, 1), (64, 64), (1, 1)),
        ((1920, 1), (1920, 64), (1920, 1)),
        ((65535, 16), (4096, 64), (32768, 8)),
    ],
)
def test_live_pictures_are_resized(size: tuple[int, int], works: tuple[int, int], result: tuple[int, int]) -> None:
    assert live_sizes(*size, 8, 512 * 512) == (works, result)
    width, height = live_sizes(*size, 64, 512 * 512)[0]
    assert width % 64 == height % 64 == 0
    assert width * height <= 512 * 512
