"""Estimates how long a run takes, from the sizes of the model and the request. Earlier runs correct the estimates."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping

from .frames import working_count, working_size
from .model_map import PipelineRow
from .protocol import RunRequest
from .shapes import SHAPES
from .styles import STYLES

# The number of operations that a VAE needs for each pixel it encodes or decodes, and its speed as a fraction of the
# transformer's. Both are rough until the first runs have corrected the estimate.
_VAE_OPERATIONS = 8e6
_VAE_SPEED = 0.1

# The weight of the latest run in the correction.
_LAST = 0.3


class Estimates:
    """The estimates of one server. Several threads may use it."""

    def __init__(self, rows: Mapping[str, PipelineRow], teraflops: float | None) -> None:
        """teraflops is the card's speed, if it is known."""
        self._rows = rows
        self._teraflops = teraflops
        self._lock = threading.Lock()
        # The ratio of measured to computed seconds, by pipeline.
        self._seen: dict[str, float] = {}

    def seconds(self, name: str, request: RunRequest) -> float | None:
        """Returns how many seconds the request is expected to take if the pipeline is loaded, or None if that is
        unknown."""
        computed = self._computed(self._rows[name], request)
        with self._lock:
            seen = self._seen.get(name)
        if seen is None:
            return None if self._teraflops is None else computed
        return computed * seen

    def ended(self, name: str, request: RunRequest, seconds: float) -> None:
        """Records how long a run took, without the loading of its pipeline."""
        computed = self._computed(self._rows[name], request)
        if seconds <= 0:
            return
        with self._lock:
            before = self._seen.get(name, seconds / computed)
            self._seen[name] = before + _LAST * (seconds / computed - before)

    def too_long(self, name: str, request: RunRequest) -> bool:
        """Reports whether the run would probably not finish within its remaining time."""
        if request.remaining <= 0 or (seconds := self.seconds(name, request)) is None:
            return False
        return seconds > request.remaining

    def longest(self, name: str, request: RunRequest) -> int:
        """Returns the length of the longest clip that could be edited in the remaining time, in whole seconds, or 0."""
        least, most = 0, max(math.floor(request.duration), 0)
        while least < most:
            middle = (least + most + 1) // 2
            if self.too_long(name, request.model_copy(update={"duration": float(middle)})):
                most = middle - 1
            else:
                least = middle
        return least

    def _computed(self, row: PipelineRow, request: RunRequest) -> float:
        """Returns the computed seconds. For an unknown card it assumes a typical speed; the ratio between two
        requests is still right."""
        speed = (self._teraflops or 100.0) * 1e12
        denoising, in_vae = work_of(row, request)
        return denoising / speed + in_vae / (speed * _VAE_SPEED)


def work_of(row: PipelineRow, request: RunRequest) -> tuple[float, float]:
    """Returns the work of a run in floating-point operations: in the transformer, and in the VAE."""
    shape = SHAPES[row.shape]
    width, height = working_size(request.width, request.height, row.multiple, row.pixels)
    lengths, passes_of_vae = [1], 2
    style = STYLES[row.class_name]
    if style.takes != "image":
        window = row.window
        total = working_count(request.frame_count, request.fps, row.fps)
        if style.takes == "text":
            lengths, passes_of_vae = [min(window.valid(total), window.frames)], 1
        else:
            lengths = [window.valid(length) for _, length in window.plan(total)]
            # VACE encodes the kept area and the repainted area.
            passes_of_vae = 3 if style.references else 2
    # The new picture, the edited picture and a reference each add their tokens.
    pictures = 1 + (style.takes == "image") + (request.reference is not None and style.references)
    passes = row.steps * (1 if row.guidance is not None and row.guidance <= 1 else 2)
    denoising = in_vae = 0.0
    for length in lengths:
        tokens = shape.tokens(width, height, length) + (pictures - 1) * shape.tokens(width, height, 1)
        denoising += passes * shape.operations(tokens)
        in_vae += passes_of_vae * width * height * length * _VAE_OPERATIONS
    return denoising, in_vae
