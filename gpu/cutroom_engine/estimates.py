"""Run time estimates, computed from the sizes of the model and the request, and corrected by
earlier runs."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping
from dataclasses import dataclass

from .frames import working_count, working_size
from .model_map import CardRow, PipelineRow
from .protocol import RunRequest
from .shapes import SHAPES
from .styles import STYLES

# A VAE's operations for each pixel that it encodes or decodes, and the fraction of the
# transformers' speed that it reaches. Both are rough; the first runs correct them.
_VAE_OPERATIONS = 8e6
_VAE_SPEED = 0.1

# Estimates may be wrong by these factors, computed or observed; longer requests are rejected.
_COMPUTED, _SEEN = 1.5, 1.1

# The weight of the last run in the correction.
_LAST = 0.3


class Estimates:
    """A server's estimates. It is safe for concurrent use."""

    def __init__(self, rows: Mapping[str, PipelineRow], card: CardRow | None) -> None:
        self._rows = rows
        self._card = card
        self._lock = threading.Lock()
        # Observed seconds per computed second, by pipeline.
        self._seen: dict[str, float] = {}

    def seconds(self, name: str, request: RunRequest) -> float | None:
        """Returns the loaded pipeline's expected time, or None if unknown."""
        computed = self._computed(self._rows[name], request)
        with self._lock:
            seen = self._seen.get(name)
        if computed is None or (seen is None and self._speed(name) is None):
            return None
        return computed * (1.0 if seen is None else seen)

    def ended(self, name: str, request: RunRequest, seconds: float) -> None:
        """Records the time of a run, without loading."""
        computed = self._computed(self._rows[name], request)
        if computed is None or seconds <= 0:
            return
        with self._lock:
            before = self._seen.get(name, seconds / computed)
            self._seen[name] = before + _LAST * (seconds / computed - before)

    def too_long(self, name: str, request: RunRequest) -> bool:
        """Reports whether the run is expected to exceed its remaining time."""
        if request.remaining <= 0 or (seconds := self.seconds(name, request)) is None:
            return False
        return seconds > request.remaining * self.slack(name)

    def slack(self, name: str) -> float:
        """Returns the factor by which a run may be expected to exceed its remaining time."""
        with self._lock:
            return _SEEN if name in self._seen else _COMPUTED

    def longest(self, name: str, request: RunRequest) -> int:
        """Returns the longest clip in whole seconds that fits into the time, or 0."""
        least, most = 0, max(math.floor(request.duration), 0)
        while least < most:
            middle = (least + most + 1) // 2
            if self.too_long(name, request.model_copy(update={"duration": float(middle)})):
                most = middle - 1
            else:
                least = middle
        return least

    def _speed(self, name: str) -> float | None:
        if self._card is None or self._rows[name].shape is None:
            return None
        return self._card.teraflops * 1e12

    def _computed(self, row: PipelineRow, request: RunRequest) -> float | None:
        """Returns the seconds for operations at the card's speed. An unknown size or speed is
        replaced by an assumed one, whose proportions are right."""
        speed = (self._card.teraflops if self._card is not None else 100.0) * 1e12
        work = work_of(row, request)
        return work.denoising / speed + work.in_vae / (speed * _VAE_SPEED)


@dataclass(frozen=True)
class Work:
    """A run's work, in floating-point operations."""

    denoising: float
    in_vae: float


def work_of(row: PipelineRow, request: RunRequest) -> Work:
    """Returns a run's work; a row without a shape gets an assumed model size."""
    shape = SHAPES[row.shape or "wan2.1-14b"]
    width, height = working_size(request.width, request.height, row.multiple, row.pixels)
    lengths, passes_of_vae = [1], 2
    style = STYLES[row.class_name]
    if style.takes != "image":
        window = row.window.window()
        total = working_count(request.frame_count, request.fps, row.fps)
        if style.takes == "text":
            lengths, passes_of_vae = [min(window.valid(total), window.frames)], 1
        else:
            lengths = [window.valid(length) for _, length in window.plan(total)]
            # VACE encodes the kept and the repainted areas, Animate pose and clip.
            passes_of_vae = 3 if style.references else 2
    # The edited picture and each reference add to the new picture.
    pictures = 1 + (style.takes == "image") + (request.reference is not None and style.references)
    steps = max(1, int(row.steps * float(row.call.get("strength", 1.0))))
    passes = steps * (1 if row.guidance is not None and row.guidance <= 1 else 2)
    denoising = in_vae = 0.0
    for length in lengths:
        tokens = shape.tokens(width, height, length) + (pictures - 1) * shape.tokens(width, height, 1)
        denoising += passes * shape.operations(tokens)
        in_vae += passes_of_vae * width * height * length * _VAE_OPERATIONS
    return Work(denoising, in_vae)
