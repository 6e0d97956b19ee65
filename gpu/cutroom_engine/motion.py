"""Draws a person's motion in a clip as pictures, for pipelines that use poses."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from .frames import Frame

# The indices of COCO's keypoints.
_NOSE, _EYES, _EARS, _SHOULDERS = 0, (1, 2), (3, 4), (5, 6)
_NECK = 17

# Pairs of connected keypoints. They have OpenPose's order and colors, because pipelines are trained on them.
_LIMBS = (
    (_NECK, 6),
    (_NECK, 5),
    (6, 8),
    (8, 10),
    (5, 7),
    (7, 9),
    (_NECK, 12),
    (12, 14),
    (14, 16),
    (_NECK, 11),
    (11, 13),
    (13, 15),
    (_NECK, 0),
    (0, 2),
    (2, 4),
    (0, 1),
    (1, 3),
)
_HUES = len(_LIMBS) + 1

# The indices of COCO's keypoints and the neck, in OpenPose's order, which determines their colors.
_ORDER = (0, _NECK, 6, 8, 10, 5, 7, 9, 12, 14, 16, 11, 13, 15, 2, 1, 4, 3)

# Limbs are darker than keypoints by the first factor. Their thickness is the shorter side divided by the second
# number. This is how WanAnimate's authors draw them.
_DARKER, _THICK = 0.6, 200

# The bones of a hand, from the wrist to the fingertips.
_BONES = tuple((0 if joint % 4 == 1 else joint - 1, joint) for joint in range(1, 21))
_JOINT = (0, 0, 255)

# The index of the first keypoint of the left and of the right hand in COCO-WholeBody, and a hand's number of
# keypoints.
_HANDS, _OF_HAND = (91, 112), 21

# Keypoints with a lower confidence are not drawn.
_CERTAIN = 0.3


@dataclass(frozen=True)
class Person:
    """A person in a picture. For each of COCO's 17 keypoints: x and y in pixels, and the confidence (0 to 1). The box
    around the person: left, top, right and bottom in pixels. If the estimator finds hands, also the 21 keypoints of
    the left and of the right hand."""

    points: NDArray[np.float32]
    box: tuple[float, float, float, float]
    hands: tuple[NDArray[np.float32], ...] = ()


def person(points: NDArray[np.float32], box: tuple[float, float, float, float]) -> Person:
    """Returns the person that has these keypoints of COCO, or of COCO-WholeBody, which includes hands."""
    hands = [points[start : start + _OF_HAND] for start in _HANDS if len(points) >= start + _OF_HAND]
    return Person(points[:_NECK], box, tuple(hands))


def skeleton(person: Person | None, width: int, height: int) -> Frame:
    """Draws the person's limbs on black, and the hands if they are known."""
    picture = Image.new("RGB", (width, height))
    if person is not None:
        _draw(picture, person)
        for hand in person.hands:
            _draw_hand(picture, hand)
    return np.asarray(picture, dtype=np.uint8)


def _draw(picture: Image.Image, person: Person) -> None:
    draw = ImageDraw.Draw(picture)
    thick = max(1, min(picture.size) // _THICK)
    points = _with_neck(person.points)
    for i, (a, b) in enumerate(_LIMBS):
        if min(points[a, 2], points[b, 2]) >= _CERTAIN:
            darker = tuple(int(_DARKER * value) for value in _colour(i / _HUES))
            draw.line([*points[a, :2], *points[b, :2]], fill=darker, width=2 * thick)
    for i, (x, y, certainty) in enumerate(points[list(_ORDER)]):
        if certainty >= _CERTAIN:
            draw.ellipse([x - thick, y - thick, x + thick, y + thick], fill=_colour(i / _HUES))


def _draw_hand(picture: Image.Image, points: NDArray[np.float32]) -> None:
    draw = ImageDraw.Draw(picture)
    thick = max(1, min(picture.size) // _THICK)
    for i, (a, b) in enumerate(_BONES):
        if min(points[a, 2], points[b, 2]) >= _CERTAIN:
            draw.line([*points[a, :2], *points[b, :2]], fill=_colour(i / len(_BONES)), width=thick)
    for x, y, certainty in points:
        if certainty >= _CERTAIN:
            draw.ellipse([x - thick, y - thick, x + thick, y + thick], fill=_JOINT)


def face(frame: Frame, person: Person | None, side: int) -> Image.Image:
    """Returns the person's face as a square picture. It is black if no face is visible."""
    if person is None:
        return Image.new("RGB", (side, side))
    head = person.points[[_NOSE, *_EYES, *_EARS]]
    head = head[head[:, 2] >= _CERTAIN]
    if len(head) < 2:
        return Image.new("RGB", (side, side))
    middle = head[:, :2].mean(axis=0)
    # The distance between the ears is about half the height of a head including hair and chin.
    half = max(float(np.ptp(head[:, 0])), float(np.ptp(head[:, 1])), 4.0)
    box = (middle[0] - half, middle[1] - half, middle[0] + half, middle[1] + half)
    return Image.fromarray(frame).transform((side, side), Image.Transform.EXTENT, box, Image.Resampling.BILINEAR)


def region(person: Person | None, width: int, height: int) -> NDArray[np.bool_]:
    """Returns the area around the person to repaint. Its edges lie on a grid of blocks, as in the
    pipeline's training."""
    where = np.zeros((height, width), dtype=np.bool_)
    if person is None:
        return where
    left, top, right, bottom = person.box
    room = 0.06 * max(right - left, bottom - top)
    block = max(1, min(width, height) // 20)

    def down(edge: float) -> int:
        return max(0, math.floor(edge / block) * block)

    def up(edge: float) -> int:
        return max(0, math.ceil(edge / block) * block)

    where[down(top - room) : up(bottom + room), down(left - room) : up(right + room)] = True
    return where


def _with_neck(points: NDArray[np.float32]) -> NDArray[np.float32]:
    left, right = points[_SHOULDERS[0]], points[_SHOULDERS[1]]
    neck = (left + right) / 2
    neck[2] = min(left[2], right[2])
    return np.vstack([points, neck])


def _colour(share: float) -> tuple[int, int, int]:
    """Returns the color at a fraction of the color circle, which starts with red."""
    hue = share * 6
    rise = round(255 * (hue % 1))
    sixth = (
        (255, rise, 0),
        (255 - rise, 255, 0),
        (0, 255, rise),
        (0, 255 - rise, 255),
        (rise, 0, 255),
        (255, 0, 255 - rise),
    )
    return sixth[int(hue)]
