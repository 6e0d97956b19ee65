"""Decides which pipelines are in memory."""

from __future__ import annotations

import gc
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol

from .footprint import Footprint, footprint, together
from .model_map import PipelineRow
from .pipeline import Pipeline

_logger = logging.getLogger(__name__)

Load = Callable[[str, PipelineRow], Pipeline]


class Meter(Protocol):
    """Measures the memory of a device, in bytes."""

    def used(self) -> int:
        """Returns how many bytes all tensors use now."""

    def begin(self) -> None:
        """Restarts the measurement of the peak."""

    def most(self) -> int:
        """Returns the peak since begin."""


class Residents:
    """Keeps as many pipelines in memory as fit, and evicts the least recently used ones. How much memory they need is
    computed, and corrected by measurements. Only one thread may use it, but any thread may call names and memory."""

    def __init__(
        self, rows: Mapping[str, PipelineRow], memory: int | None, load: Load, meter: Meter | None = None
    ) -> None:
        self._rows = rows
        self._memory = memory
        self._load = load
        self._meter = meter
        self._resident: OrderedDict[str, Pipeline] = OrderedDict()
        # For each pipeline, in bytes: by how much its new weights exceeded their computed size, and the peak of all
        # memory during a run.
        self._beyond: dict[str, int] = {}
        self._most: dict[str, int] = {}

    def names(self) -> list[str]:
        """The pipelines in memory, least recently used first."""
        return list(self._resident)

    def get(self, name: str) -> Pipeline:
        """Returns the pipeline. It is loaded first if it is not in memory."""
        if name in self._resident:
            self._resident.move_to_end(name)
            return self._resident[name]
        while self._resident and not self._fits(name):
            self._evict(next(iter(self._resident)))
        began = time.monotonic()
        before = self._used()
        pipeline = self._load(name, self._rows[name])
        if self._meter is not None:
            self._beyond[name] = self._used() - before - self._missing(name)
        self._resident[name] = pipeline
        _logger.info("loaded a pipeline", extra={"pipeline": name, "seconds": round(time.monotonic() - began, 3)})
        return pipeline

    @contextmanager
    def measured(self, name: str) -> Iterator[None]:
        """Measures how much memory a run of the pipeline uses."""
        if self._meter is None:
            yield
            return
        self._meter.begin()
        try:
            yield
        finally:
            self._most[name] = max(self._most.get(name, 0), self._meter.most())

    def memory(self) -> dict[str, dict[str, int]]:
        """Returns figures in bytes by pipeline and kind. "computed" is the memory computed for the pipeline as the
        only one loaded, "needed" is that figure corrected by the measured size of weights, and "measured" is the
        peak of all memory during one of its runs."""
        found: dict[str, dict[str, int]] = {}
        for name, row in self._rows.items():
            found[name] = {"computed": footprint(row).alone, "needed": self._need(name).alone}
            if name in self._most:
                found[name]["measured"] = self._most[name]
        return found

    def evict_all(self) -> None:
        """Releases all memory, even of a pipeline that failed to load. The garbage collector must run, because a
        pipeline's parts refer to each other."""
        gc.collect()
        for name in self.names():
            self._evict(name)

    def _fits(self, name: str) -> bool:
        needs = [self._need(resident) for resident in (*self._resident, name)]
        return self._memory is not None and together(needs) <= self._memory

    def _need(self, name: str) -> Footprint:
        """Returns the memory that the pipeline needs."""
        computed = footprint(self._rows[name])
        corrected: Hashable = "beyond", name
        return Footprint(computed.parts | {corrected: self._beyond.get(name, 0)}, computed.working)

    def _missing(self, name: str) -> int:
        """Returns the computed size of those parts of a pipeline that are not in memory, in bytes."""
        there = [footprint(self._rows[other]) for other in self._resident]
        parts = footprint(self._rows[name]).parts
        return sum(size for part, size in parts.items() if not any(part in other.parts for other in there))

    def _used(self) -> int:
        return 0 if self._meter is None else self._meter.used()

    def _evict(self, name: str) -> None:
        self._resident.pop(name).close()
        _logger.info("unloaded a pipeline", extra={"pipeline": name})
