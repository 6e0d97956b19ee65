"""Derives VACE's inputs (controls and masks) from a shot's frames, as the model map specifies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from PIL import Image

from .controls import Mask, in_blocks, lines
from .frames import Frame
from .model_map import PipelineRow
from .seeing import Depth, Parser
from .styles import Shot

# The fraction of a reference that its labeled parts must cover. Otherwise nothing was recognized, and the reference is
# not cut out.
_LEAST = 0.02


class Conditions:
    """The models that analyze the clip. They are loaded with the pipeline that uses their results."""

    def __init__(self, row: PipelineRow, device: str) -> None:
        self._row = row
        self._depth: Depth | None = None
        self._parser: Parser | None = None
        if row.control is not None and row.control.model is not None:
            self._depth = Depth(Path(row.control.model), device)
        if row.mask is not None:
            self._parser = Parser(Path(row.mask.model), [*row.mask.labels, *row.mask.cutout], device)

    def of(self, shot: Shot, check: Callable[[], None]) -> Shot:
        """Returns the shot with its conditions. Calls check every few frames."""
        masks: list[Mask] = []
        references = list(shot.references)
        if self._parser is not None and self._row.mask is not None:
            masks = [in_blocks(area) for area in self._parser.areas(shot.frames, self._row.mask.labels, check)]
            for i, reference in enumerate(references if self._row.mask.cutout else []):
                picture = np.asarray(reference)
                (area,) = self._parser.areas([picture], self._row.mask.cutout, check)
                if area.mean() > _LEAST:
                    references[i] = Image.fromarray(np.where(area[..., None], picture, np.uint8(255)))
        return replace(shot, control=self._control(shot, check), masks=masks, references=references)

    def _control(self, shot: Shot, check: Callable[[], None]) -> list[Frame]:
        if self._row.control is None:
            return []
        if self._depth is not None:
            return self._depth.pictures(shot.frames, check)
        drawn: list[Frame] = []
        for frame in shot.frames:
            check()
            drawn.append(lines(frame))
        return drawn
