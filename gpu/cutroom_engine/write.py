"""Writes results: an MP4 without sound, or a PNG. The worker converts them to the catalog's size, rate and length."""

from __future__ import annotations

import platform
from fractions import Fraction
from types import TracebackType

import av
import numpy as np
from PIL import Image

from .frames import Frame

# Constants of ITU-T H.273 and FFmpeg for BT.709 color and limited range.
_BT709, _NARROW = 1, 1

# With AVX-512, x264's macroblock tree reads beyond the rows of pictures whose width is not a multiple of 128, so the
# output would differ from run to run. Every machine with a GPU has AVX2.
_SAME_CODE = {"x264-params": "asm=avx2"} if platform.machine() == "x86_64" else {}


class VideoWriter:
    """Writes an MP4 with H.264. The worker encodes it again, so little is lost here.

    Use it as a context manager: leaving it without an error finishes the file.
    """

    def __init__(self, path: str, width: int, height: int, fps: int) -> None:
        self._container = av.open(path, "w", format="mp4")
        self._video = self._container.add_stream("libx264", rate=fps)
        self._video.width, self._video.height, self._video.pix_fmt = width, height, "yuv420p"
        self._time_base = self._video.time_base = Fraction(1, fps)
        # The encoder's output depends on its number of threads, so that number is fixed.
        self._video.options = {"preset": "veryfast", "crf": "10", "threads": "4", "g": str(fps), **_SAME_CODE}
        context = self._video.codec_context
        context.colorspace = context.color_primaries = context.color_trc = _BT709
        context.color_range = _NARROW
        self._written = 0

    def __enter__(self) -> VideoWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._container.mux(self._video.encode(None))
        finally:
            self._container.close()

    def write(self, frame: Frame) -> None:
        picture = av.VideoFrame.from_ndarray(np.ascontiguousarray(frame), format="rgb24")
        picture = picture.reformat(format="yuv420p", dst_colorspace="ITU709", dst_color_range="MPEG")
        picture.pts, picture.time_base = self._written, self._time_base
        self._container.mux(self._video.encode(picture))
        self._written += 1


def write_image(path: str, frame: Frame) -> None:
    Image.fromarray(frame).save(path, format="PNG")
