"""Encodes results as a stream: an MP4 that browsers can play while it downloads, or a PNG."""

from __future__ import annotations

import platform
from fractions import Fraction
from types import TracebackType

import av
import numpy as np
from PIL import Image

from .frames import Frame
from .sound import RATE, Sound

# Constants of ITU-T H.273 and FFmpeg for BT.709 color and limited range.
_BT709, _NARROW = 1, 1

# This flag makes FFmpeg's output reveal nothing about the program and the machine.
_BITEXACT = 1 << 23

# With AVX-512, x264's macroblock tree reads beyond the rows of pictures whose width is not a multiple of 128, so the
# output would differ from run to run. Every machine with a GPU has AVX2.
_SAME_CODE = {"x264-params": "asm=avx2"} if platform.machine() == "x86_64" else {}

_SOUND_FRAME = 1024


class VideoWriter:
    """Writes an MP4 with H.264, and with AAC if there is sound. Its index is at the start.

    Use it as a context manager: leaving it without an error finishes the file.
    """

    def __init__(self, path: str, width: int, height: int, fps: int, sound: Sound | None) -> None:
        self._container = av.open(path, "w", format="mp4", options={"movflags": "+faststart", "fflags": "+bitexact"})
        self._size = width, height
        self._fps = fps
        self._written = 0
        video = self._container.add_stream("libx264", rate=fps)
        video.width, video.height, video.pix_fmt = width, height, "yuv420p"
        video.time_base = Fraction(1, fps)
        # The encoder's output depends on its number of threads, so that number is fixed.
        video.options = {
            "preset": "fast",
            "crf": "18",
            "profile": "high",
            "threads": "4",
            "g": str(2 * fps),
            **_SAME_CODE,
        }
        context = video.codec_context
        context.flags |= _BITEXACT
        context.colorspace = context.color_primaries = context.color_trc = _BT709
        context.color_range = _NARROW
        context.sample_aspect_ratio = Fraction(1, 1)
        self._video = video
        self._sound = sound
        self._sound_written = 0
        if sound is not None:
            self._audio = self._container.add_stream("aac", rate=RATE, layout="stereo")
            self._audio.bit_rate = 160_000
            self._audio.codec_context.flags |= _BITEXACT

    def __enter__(self) -> VideoWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._finish()
        finally:
            self._container.close()

    def write(self, frame: Frame) -> None:
        """Adds a picture of any size, and the sound up to the picture's end."""
        picture = av.VideoFrame.from_ndarray(np.ascontiguousarray(frame), format="rgb24")
        width, height = self._size
        picture = picture.reformat(
            width, height, "yuv420p", dst_colorspace="ITU709", dst_color_range="MPEG", interpolation="LANCZOS"
        )
        picture.pts, picture.time_base = self._written, Fraction(1, self._fps)
        self._container.mux(self._video.encode(picture))
        self._written += 1
        self._write_sound(self._written * RATE // self._fps, last=False)

    def _write_sound(self, until: int, *, last: bool) -> None:
        """Adds sound up to the sample with the given index. Only whole frames are written, except at the end."""
        if self._sound is None:
            return
        while (left := until - self._sound_written) >= _SOUND_FRAME or (last and left > 0):
            samples = self._sound.take(min(left, _SOUND_FRAME))
            piece = av.AudioFrame.from_ndarray(np.ascontiguousarray(samples), format="fltp", layout="stereo")
            piece.sample_rate, piece.pts, piece.time_base = RATE, self._sound_written, Fraction(1, RATE)
            self._container.mux(self._audio.encode(piece))
            self._sound_written += samples.shape[1]

    def _finish(self) -> None:
        self._container.mux(self._video.encode(None))
        self._write_sound(self._written * RATE // self._fps, last=True)
        if self._sound is not None:
            self._container.mux(self._audio.encode(None))


def write_image(path: str, frame: Frame, width: int, height: int) -> None:
    """Writes a picture as a PNG of the given size."""
    picture = Image.fromarray(frame)
    if picture.size != (width, height):
        picture = picture.resize((width, height), Image.Resampling.LANCZOS)
    picture.save(path, format="PNG")
