from __future__ import annotations

import numpy as np
import pytest

from cutroom_engine import controls
from cutroom_engine.frames import Frame
from cutroom_engine.styles import STYLES, Shot


def edge() -> Frame:
    """Returns a frame with a dark and a light half."""
    frame = np.full((96, 128, 3), 40, dtype=np.uint8)
    frame[:, 64:] = 200
    return frame


def test_drawing_has_black_lines_on_white() -> None:
    drawn = controls.lines(edge())
    assert drawn.shape == (96, 128, 3)
    assert (drawn[:, :48] == 255).all()
    assert (drawn[:, 80:] == 255).all()
    assert drawn[:, 62:66].min() == 0


def test_drawing_ignores_color_and_brightness() -> None:
    assert (controls.lines(np.full((64, 96, 3), (200, 30, 90), dtype=np.uint8)) == 255).all()
    darker = (edge() * 0.8).astype(np.uint8)
    assert np.abs(controls.lines(darker).astype(int) - controls.lines(edge())).mean() < 4


def test_nearest_point_is_white() -> None:
    picture = controls.near_is_light(np.array([[2.0, 4.0], [6.0, 10.0]], dtype=np.float32))
    assert picture[..., 0].tolist() == [[0, 64], [128, 255]]
    assert not controls.near_is_light(np.full((2, 2), 3, dtype=np.float32)).any()


@pytest.mark.parametrize(("height", "width"), [(64, 96), (65, 90)])
def test_areas_are_extended_to_blocks(height: int, width: int) -> None:
    where = np.zeros((height, width), dtype=np.bool_)
    assert not controls.in_blocks(where).any()
    where[40, 40] = True
    grown = controls.in_blocks(where)
    assert grown.shape == where.shape
    assert grown[16:64, 16:64].all()
    assert grown.sum() == 48 * 48


def test_vace_gets_grey_or_control_in_repainted_areas() -> None:
    frames = [np.full((16, 16, 3), 10 * i, dtype=np.uint8) for i in range(1, 4)]
    before = [np.full((16, 16, 3), 99, dtype=np.uint8)]
    left = np.zeros((16, 16), dtype=np.bool_)
    left[:, :8] = True
    black = [np.zeros((16, 16, 3), dtype=np.uint8)] * 3
    shot = Shot(prompt="", seed=0, width=16, height=16, length=3, frames=frames, before=before, masks=[left] * 3)
    for control, fill in (([], controls.GREY), (black, 0)):
        arguments = STYLES["WanVACEPipeline"].arguments(Shot(**(vars(shot) | {"control": control})))
        shown = [np.asarray(picture)[0, :, 0].tolist() for picture in arguments["video"]]
        assert shown == [[99] * 16, [fill] * 8 + [20] * 8, [fill] * 8 + [30] * 8]
        masks = [np.asarray(mask)[0].tolist() for mask in arguments["mask"]]
        assert masks == [[0] * 16, [255] * 8 + [0] * 8, [255] * 8 + [0] * 8]
