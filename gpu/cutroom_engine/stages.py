"""Measures how long each stage of a run takes."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

from .frames import Frame


class Stages:
    """The seconds of each stage."""

    def __init__(self) -> None:
        self._seconds: defaultdict[str, float] = defaultdict(float)

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Adds the duration of the block to the stage."""
        began = time.monotonic()
        try:
            yield
        finally:
            self._seconds[name] += time.monotonic() - began

    def pause(self, name: str, seconds: float) -> None:
        """Subtracts from the stage the time of other work."""
        self._seconds[name] -= seconds

    @property
    def working(self) -> float:
        """The seconds of all stages except loading."""
        return sum(seconds for name, seconds in self._seconds.items() if name != "load")

    def timed(self, name: str, items: Iterator[Frame]) -> Iterator[Frame]:
        """Adds to the stage the time that the iterator needs to produce its items."""
        while True:
            with self(name):
                try:
                    item = next(items)
                except StopIteration:
                    return
            yield item

    def seconds(self) -> dict[str, float]:
        """Returns the measured seconds, rounded to milliseconds."""
        return {name: round(seconds, 3) for name, seconds in self._seconds.items()}
