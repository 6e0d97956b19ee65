"""Pictures, and sizes for models to work at."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

# A picture: height x width x 3, red, green and blue as sRGB in 8 bits each.
Frame: TypeAlias = NDArray[np.uint8]


def working_size(width: int, height: int, multiple: int, pixels: int | None) -> tuple[int, int]:
    """The size at which a model works for a result of the size: sides that it can
    have, about the same aspect, and at most so many pixels."""
    scale = 1.0
    if pixels is not None and width * height > pixels:
        scale = math.sqrt(pixels / (width * height))

    def side(length: int) -> int:
        # Rounded down where there is a bound, which is for the memory's sake.
        units = length * scale / multiple
        return max(1, math.floor(units) if scale < 1 else round(units)) * multiple

    return side(width), side(height)


def retime(frames: Iterator[Frame], rate: float, fps: int, count: int) -> Iterator[Frame]:
    """Frames of one rate as count frames of another: each the one shown at its time.
    When the input ends early its last frame is repeated."""
    source = iter(frames)
    current = next(source)
    index = 0
    for i in range(count):
        wanted = math.floor(i * rate / fps + 1e-6)
        while index < wanted:
            following = next(source, None)
            if following is None:
                break
            current = following
            index += 1
        yield current
