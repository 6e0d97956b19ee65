"""The pipelines in memory."""

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

Load = Callable[[str, PipelineRow], Pipeline]


class Residents:
    """Keeps as many pipelines as fit into memory, and evicts the least recently used
    first. One thread uses it."""

    def __init__(self, rows: Mapping[str, PipelineRow], memory: int | None, load: Load) -> None:
        self._rows = rows
        self._memory = memory
        self._load = load
        self._resident: OrderedDict[str, Pipeline] = OrderedDict()

    def names(self) -> list[str]:
        """The pipelines in memory, the least recently used first."""
        return list(self._resident)

    def get(self, name: str) -> Pipeline:
        """Returns the pipeline, and loads it first if it is not in memory."""
        if name in self._resident:
            self._resident.move_to_end(name)
            return self._resident[name]
        while self._resident and not self._fits(name):
            self._evict(next(iter(self._resident)))
        began = time.monotonic()
        pipeline = self._load(name, self._rows[name])
        self._resident[name] = pipeline
        _logger.info("loaded a pipeline", extra={"pipeline": name, "seconds": round(time.monotonic() - began, 3)})
        return pipeline

    def evict_all(self) -> None:
        """Releases all memory, including that of a pipeline whose loading failed: its parts
        refer to each other, so they stay until the garbage collector runs."""
        gc.collect()
        for name in self.names():
            self._evict(name)

    def _fits(self, name: str) -> bool:
        needs = [footprint(resident, self._rows[resident]) for resident in (*self._resident, name)]
        known = [need for need in needs if need is not None]
        return self._memory is not None and len(known) == len(needs) and together(known) <= self._memory

    def _evict(self, name: str) -> None:
        self._resident.pop(name).close()
        _logger.info("let a pipeline go", extra={"pipeline": name})
