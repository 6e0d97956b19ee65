"""Handles pictures, and the sizes at which models work."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image

# A picture as an array of height x width x 3: red, green and blue in sRGB, 8 bits each.
Frame: TypeAlias = NDArray[np.uint8]

# The minimum length of a picture's shorter side, and the maximum ratio of its sides. FLUX.2 rejects other pictures,
# and some pipelines would shrink them to nothing.
_SHORTEST, _TIMES = 64, 8


def shown(picture: Image.Image) -> Image.Image:
    """Returns the picture in a size that every pipeline accepts: narrow pictures get white borders, and small ones
    are enlarged."""
    width, height = picture.size
    whole = max(width, math.ceil(height / _TIMES)), max(height, math.ceil(width / _TIMES))
    if whole != picture.size:
        under = Image.new("RGB", whole, "white")
        under.paste(picture, ((whole[0] - width) // 2, (whole[1] - height) // 2))
        picture = under
    if (shortest := min(picture.size)) < _SHORTEST:
        width, height = (math.ceil(side * _SHORTEST / shortest) for side in picture.size)
        picture = picture.resize((width, height), Image.Resampling.LANCZOS)
    return picture


def working_size(width: int, height: int, multiple: int, pixels: int | None) -> tuple[int, int]:
    """Returns the size at which a model works for a result of the given size.

    The model supports these sides. The aspect ratio is about the same, and there are at most the given number of
    pixels.
    """
    scale = 1.0
    if pixels is not None and width * height > pixels:
        scale = math.sqrt(pixels / (width * height))

    def side(length: int) -> int:
        # Round down if there is a limit, because the limit protects the memory.
        units = length * scale / multiple
        return max(1, math.floor(units) if scale < 1 else round(units)) * multiple

    return side(width), side(height)


def live_sizes(width: int, height: int, multiple: int, pixels: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """Returns the size at which a model works for a live picture, and the size of the result.

    The working size has sides that the model supports and at most the given number of pixels, whatever the picture's
    aspect ratio. The result has the picture's aspect ratio. It is no larger than the picture or the working size.
    """
    scale = min(1.0, math.sqrt(pixels / (width * height)))
    result = max(1, round(width * scale)), max(1, round(height * scale))

    def side(length: int, most: float) -> int:
        return max(-(-_SHORTEST // multiple), min(math.floor(most / multiple), round(length / multiple))) * multiple

    short = side(min(result), math.sqrt(pixels))
    long = side(max(result), pixels / short)
    return ((short, long) if width < height else (long, short)), result


def working_count(count: int, fps: int, rate: int | None) -> int:
    """Returns how many frames a model must make at the frame rate `rate` for `count` frames of the result. None means
    the result's rate."""
    return count if rate is None else max(1, math.ceil(count / fps * rate))


def retime(frames: Iterator[Frame], rate: float, fps: int, count: int) -> Iterator[Frame]:
    """Converts frames at one rate to `count` frames at another. Each is the frame that is visible at its time. If the
    input ends early, its last frame is repeated."""
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
