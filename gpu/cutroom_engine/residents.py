"""Decides which pipelines are in memory."""

from __future__ import annotations

import gc
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping

from .footprint import footprint, together
from .model_map import PipelineRow
from .pipeline import Pipeline

_logger = logging.getLogger(__name__)


class Residents:
    """Keeps as many pipelines in memory as fit by calculation, and evicts the least recently used ones. Only one thread
    may use it, but any thread may call names."""

    def __init__(
        self, rows: Mapping[str, PipelineRow], memory: int | None, load: Callable[[PipelineRow], Pipeline]
    ) -> None:
        """memory is in bytes. None keeps only one pipeline."""
        self._rows = rows
        self._memory = memory
        self._load = load
        self._resident: OrderedDict[str, Pipeline] = OrderedDict()

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
        pipeline = self._load(self._rows[name])
        self._resident[name] = pipeline
        _logger.info("loaded a pipeline", extra={"pipeline": name, "seconds": round(time.monotonic() - began, 3)})
        return pipeline

    def preload(self, name: str) -> None:
        """Loads the pipeline if it fits into memory with the loaded ones."""
        if self._fits(name):
            self.get(name)

    def both_fit(self, name: str, other: str) -> bool:
        """Reports whether the two pipelines fit into memory together. If so, get does not evict the pipeline used
        last."""
        return self._memory is not None and self._together(name, other) <= self._memory

    def evict_all(self) -> None:
        """Releases all memory, even of a pipeline that failed to load. The garbage collector must run, because a
        pipeline's parts refer to each other."""
        gc.collect()
        for name in self.names():
            self._evict(name)

    def _fits(self, name: str) -> bool:
        return self._memory is not None and self._together(*self._resident, name) <= self._memory

    def _together(self, *names: str) -> int:
        return together(footprint(self._rows[name]) for name in names)

    def _evict(self, name: str) -> None:
        self._resident.pop(name).close()
        _logger.info("unloaded a pipeline", extra={"pipeline": name})
