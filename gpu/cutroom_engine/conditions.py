"""Derives a pipeline's inputs (controls, masks, poses) from a shot's frames, as the model map specifies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from .controls import Mask, box, grey, in_blocks, lines
from .frames import Frame
from .model_map import PipelineRow
from .motion import region, skeleton
from .poses import Poses
from .seeing import Depth, Parser
from .styles import STYLES, Shot


class Conditions:
    """The models that analyze the clip. They are loaded with the pipeline that uses their results."""

    def __init__(self, row: PipelineRow, folder: Callable[[str], Path], device: str) -> None:
        self._row = row
        self._poses: Poses | None = None
        self._depth: Depth | None = None
        self._parser: Parser | None = None
        if row.poses is not None:
            self._poses = Poses(folder(row.poses.detector), folder(row.poses.estimator), device)
        if row.control is not None and row.control.model is not None:
            self._depth = Depth(folder(row.control.model), device)
        if row.mask is not None and row.mask.model is not None:
            self._parser = Parser(folder(row.mask.model), row.mask.labels, device)

    def of(self, shot: Shot, check: Callable[[], None]) -> Shot:
        """Returns the shot with its conditions. Calls check every few frames."""
        if self._poses is not None:
            shot = replace(shot, people=self._poses.people(shot.frames, check))
        if not STYLES[self._row.class_name].conditioned:
            return shot
        return replace(shot, control=self._control(shot, check), masks=self._masks(shot, check))

    def _control(self, shot: Shot, check: Callable[[], None]) -> list[Frame]:
        if self._row.control is None:
            return []
        if self._depth is not None:
            return self._depth.pictures(shot.frames, check)
        if self._row.control.kind == "pose":
            return [skeleton(person, shot.width, shot.height) for person in shot.people]
        draw = lines if self._row.control.kind == "line" else grey
        drawn: list[Frame] = []
        for frame in shot.frames:
            check()
            drawn.append(draw(frame))
        return drawn

    def _masks(self, shot: Shot, check: Callable[[], None]) -> list[Mask]:
        if self._row.mask is None:
            return []
        size = shot.width, shot.height
        if self._parser is not None:
            return [in_blocks(area) for area in self._parser.areas(shot.frames, check)]
        if self._row.mask.of == "person":
            return [region(person, *size) for person in shot.people]
        return [in_blocks(box(self._row.mask.box, *size))] * len(shot.frames)
