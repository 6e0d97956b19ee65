"""Prepares VACE's inputs for a clip as in VACE's training: pictures derived from the clip, and the area to repaint.
VACE was never trained on unprocessed clips (ali-vilab/VACE, issue 35)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .frames import Frame

Mask = NDArray[np.bool_]

# In VACE's training, areas to repaint had this gray.
GREY = 128

# The weights of red, green and blue in BT.601 luma, which VACE's training pictures used.
_LUMA = np.array([0.299, 0.587, 0.114], dtype=np.float32)

# A line is where the picture is darker than its surroundings. It is found as the difference of two blurs. These are
# their standard deviations, in pixels, if the shorter side has 480.
_NEAR, _FAR = 0.8, 3.2
# The difference of luma (0 to 255) at which a line begins to show, and the difference at which it is black.
_FAINT, _FULL = 1.5, 10.0

# Repainted areas consist of blocks of this many pixels per side, because a latent covers 8 or 16 pixels.
_BLOCK = 16


def lines(frame: Frame) -> Frame:
    """Returns a drawing of the picture, with black lines on white. VACE calls it a scribble."""
    luma = frame.astype(np.float32) @ _LUMA
    scale = max(min(luma.shape) / 480, 0.5)
    near = _blurred(luma, _NEAR * scale)
    # The absolute value shows edges from dark to light as well as dark strokes.
    difference = np.abs(near - _blurred(luma, _FAR * scale))
    ink = np.clip((difference - _FAINT) / (_FULL - _FAINT), 0, 1)
    return _picture(255 * (1 - ink))


def near_is_light(depth: NDArray[np.float32]) -> Frame:
    """Returns a picture of inverse depths, whatever their range. The nearest point is white."""
    low, high = float(depth.min()), float(depth.max())
    return _picture((depth - low) * (255 / max(high - low, 1e-6)))


def in_blocks(where: Mask) -> Mask:
    """Returns the area extended to whole blocks plus one block on each side, so that no edge of the replaced object
    shows. An empty area stays empty."""
    height, width = where.shape
    rows, columns = -(-height // _BLOCK), -(-width // _BLOCK)
    padded = np.zeros((rows * _BLOCK, columns * _BLOCK), dtype=np.bool_)
    padded[:height, :width] = where
    blocks = np.pad(padded.reshape(rows, _BLOCK, columns, _BLOCK).any(axis=(1, 3)), 1)
    grown = np.zeros((rows, columns), dtype=np.bool_)
    for down in range(3):
        for right in range(3):
            grown |= blocks[down : down + rows, right : right + columns]
    return grown.repeat(_BLOCK, axis=0).repeat(_BLOCK, axis=1)[:height, :width]


def conditioned(frame: Frame, where: Mask, control: Frame | None) -> Frame:
    """Returns the picture with the area to repaint replaced by the control, or by gray without a control."""
    return np.where(where[..., None], np.uint8(GREY) if control is None else control, frame)


def _blurred(luma: NDArray[np.float32], deviation: float) -> NDArray[np.float32]:
    """Returns the picture with a Gaussian blur. Pixels at the edges are repeated outward."""
    reach = max(1, round(3 * deviation))
    weights = np.exp(-0.5 * (np.arange(-reach, reach + 1) / deviation) ** 2).astype(np.float32)
    weights /= weights.sum()
    for axis in (0, 1):
        width = luma.shape[axis]
        padded = np.pad(luma, [(reach, reach) if axis == of else (0, 0) for of in (0, 1)], mode="edge")
        luma = sum(
            (weight * padded.take(range(at, at + width), axis=axis) for at, weight in enumerate(weights)),
            start=np.zeros_like(luma),
        )
    return luma


def _picture(luma: NDArray[np.float32]) -> Frame:
    rounded = np.clip(luma + 0.5, 0, 255).astype(np.uint8)
    return np.ascontiguousarray(np.broadcast_to(rounded[..., None], (*rounded.shape, 3)))
