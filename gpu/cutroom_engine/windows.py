"""Edits clips that are longer than a model's limit, in overlapping windows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
from pydantic.dataclasses import dataclass

from .frames import Frame


@dataclass(frozen=True, config={"extra": "forbid"})
class Window:
    """How a clip is divided: the maximum number of frames that a model edits at a time, the overlap of two windows,
    and step. Models support lengths that are one more than a multiple of step."""

    frames: int = 81
    overlap: int = 9
    step: int = 4

    def __post_init__(self) -> None:
        if self.step < 1 or self.frames < 1 or (self.frames - 1) % self.step:
            raise ValueError(f"frames: {self.frames} is not one more than a multiple of {self.step}")
        if not 0 <= self.overlap < self.frames:
            raise ValueError(f"overlap: {self.overlap} is not between 0 and {self.frames - 1}")

    def valid(self, length: int) -> int:
        """Returns the smallest supported length for that many frames. It has at least two steps, because models that
        receive pictures in addition to the clip need two."""
        return max(math.ceil((length - 1) / self.step) * self.step, self.step) + 1

    def plan(self, total: int) -> list[tuple[int, int]]:
        """Returns the start and the length of each window for a clip of total frames. All windows except the last
        have the same length, which is as short as the number of windows allows."""
        if total <= self.frames:
            return [(0, total)]
        stride = self.frames - self.overlap
        count = math.ceil((total - self.overlap) / stride)
        length = min(self.valid(math.ceil((total - self.overlap) / count) + self.overlap), self.frames)
        plan = []
        start = 0
        while True:
            plan.append((start, min(length, total - start)))
            if start + length >= total:
                return plan
            start += length - self.overlap


# Edits the frames of the window with the given index. The second list holds the first frames of this window as the
# previous window has edited them.
EditWindow = Callable[[int, list[Frame], list[Frame]], list[Frame]]


def edit_in_windows(frames: Iterator[Frame], total: int, window: Window, edit: EditWindow) -> Iterator[Frame]:
    """Edits a clip and yields as many frames as it reads.

    Only the frames of one window are in memory. Where two windows overlap, the first fades into the second.
    """
    plan = window.plan(total)
    source = iter(frames)
    held: list[Frame] = []
    before: list[Frame] = []
    for number, (start, length) in enumerate(plan):
        while len(held) < length:
            held.append(next(source))
        padded = held + [held[-1]] * (window.valid(length) - length)
        edited = edit(number, padded, before)
        if len(edited) < length:
            raise ValueError(f"the model made {len(edited)} frames instead of {len(padded)}")
        edited = edited[:length]
        for i, earlier in enumerate(before):
            edited[i] = _mix(earlier, edited[i], (i + 1) / (len(before) + 1))
        if number + 1 == len(plan):
            yield from edited
            return
        shared = start + length - plan[number + 1][0]
        yield from edited[: length - shared]
        before = edited[length - shared :]
        held = held[length - shared :]


def _mix(a: Frame, b: Frame, share: float) -> Frame:
    """Blends two pictures. share is the fraction of the second."""
    mixed = a.astype(np.float32) * (1 - share) + b.astype(np.float32) * share
    return (mixed + 0.5).astype(np.uint8)
