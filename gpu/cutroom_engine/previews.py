"""Sends previews: small pictures of a run's unfinished result."""

from __future__ import annotations

import io
import logging
import time
from collections.abc import Callable
from types import TracebackType

from PIL import Image

from .frames import Frame
from .overlap import WriteBehind

_logger = logging.getLogger(__name__)

# A preview's longer side in pixels, and its JPEG quality. A preview has a few kilobytes.
_SIDE, _QUALITY = 320, 75

# Draws a preview in any size. Its aspect ratio is about the result's.
Draw = Callable[[], Frame]


class Previews:
    """Makes the previews of one run, at a limited rate.

    A thread draws and encodes them, so that the device does not wait. If a preview fails, the run continues without
    previews. Use it as a context manager: leaving it ends the thread.
    """

    def __init__(self, every: float, width: int, height: int, send: Callable[[bytes], None]) -> None:
        """width and height are the result's size. The thread calls send with each preview, a JPEG."""
        scale = min(1.0, _SIDE / max(width, height))
        self._size = max(1, round(width * scale)), max(1, round(height * scale))
        self._every, self._send = every, send
        self._due_at = 0.0
        self._busy = self._over = False
        self._behind: WriteBehind[Draw] = WriteBehind(self._make, 1)

    def __enter__(self) -> Previews:
        self._put = self._behind.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over = True
        self._behind.__exit__(kind, error, trace)

    def offer(self, begin: Callable[[], Draw]) -> None:
        """Makes a preview if it is time for one. begin is called immediately; the function that it returns draws the
        preview in the thread."""
        now = time.monotonic()
        if self._busy or self._over or now < self._due_at:
            return
        try:
            draw = begin()
        except Exception:
            self._end()
            return
        self._busy, self._due_at = True, now + self._every
        self._put(draw)

    def _make(self, draw: Draw) -> None:
        if self._over:
            return
        try:
            self._send(self._encoded(draw()))
        except Exception:
            self._end()
        self._busy = False

    def _end(self) -> None:
        self._over = True
        _logger.warning("the run continues without previews", exc_info=True)

    def _encoded(self, frame: Frame) -> bytes:
        content = io.BytesIO()
        picture = Image.fromarray(frame).resize(self._size, Image.Resampling.BICUBIC)
        picture.save(content, format="JPEG", quality=_QUALITY)
        return content.getvalue()
