"""Pictures, and the sizes at which models work."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image

# A picture: height x width x 3, red, green and blue as sRGB in 8 bits each.
Frame: TypeAlias = NDArray[np.uint8]


# The shortest side of a picture for pipelines, and the largest ratio of its sides. FLUX.2 rejects
# other pictures, and some pipelines would scale them to nothing.
_SHORTEST, _TIMES = 64, 8


def shown(picture: Image.Image) -> Image.Image:
    """Returns the picture in a shape that every pipeline accepts: narrow pictures get white
    borders, and small ones are enlarged."""
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

    The model supports its sides. Its aspect ratio is about the same, and it has at most the
    given number of pixels."""
    scale = 1.0
    if pixels is not None and width * height > pixels:
        scale = math.sqrt(pixels / (width * height))

    def side(length: int) -> int:
        # Rounded down if there is a limit, because the limit protects the memory.
        units = length * scale / multiple
        return max(1, math.floor(units) if scale < 1 else round(units)) * multiple

    return side(width), side(height)


# The shortest side for image models.
_SMALLEST = 64


def live_sizes(width: int, height: int, multiple: int, pixels: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """Returns a model's working size for a live picture, and the result's size.

    The working size has sides that the model supports and at most the given number of pixels, no
    matter which aspect ratio the picture has. The result's size has the picture's aspect ratio, and
    is at most as large as both."""
    scale = min(1.0, math.sqrt(pixels / (width * height)))
    result = max(1, round(width * scale)), max(1, round(height * scale))

    def side(length: int, most: float) -> int:
        return max(-(-_SMALLEST // multiple), min(math.floor(most / multiple), round(length / multiple))) * multiple

    short = side(min(result), math.sqrt(pixels))
    long = side(max(result), pixels / short)
    return ((short, long) if width < height else (long, short)), result


def working_count(count: int, fps: int, rate: int | None) -> int:
    """Returns the number of frames that a model makes at its rate for count frames of the result;
    None means the result's rate."""
    return count if rate is None else max(1, math.ceil(count / fps * rate))


def retime(frames: Iterator[Frame], rate: float, fps: int, count: int) -> Iterator[Frame]:
    """Converts frames at one rate to count frames at another: each is the frame shown at its time.
    If the input ends early, its last frame is repeated."""
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
