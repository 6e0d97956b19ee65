"""Reads inputs. The worker has converted them: a clip is an MP4 with the result's size and frame rate and without
sound, and a picture is a PNG. All are upright, opaque and in sRGB."""

from __future__ import annotations

from collections.abc import Iterator

import av
import numpy as np
from av.video.reformatter import Interpolation
from PIL import Image

from .frames import Frame
from .protocol import Input


def video_frames(source: Input, width: int, height: int) -> Iterator[Frame]:
    """Yields the clip's frames, scaled to the size."""
    with av.open(source.path, "r", format="mov", options={"enable_drefs": "0"}) as container:
        container.streams.video[0].thread_type = "AUTO"
        for frame in container.decode(video=0):
            scaled = frame.reformat(width, height, "rgb24", interpolation=Interpolation.BICUBIC)
            yield np.asarray(scaled.to_ndarray(), dtype=np.uint8)


def image(source: Input) -> Image.Image:
    with Image.open(source.path, formats=["PNG"]) as opened:
        return opened.convert("RGB")
