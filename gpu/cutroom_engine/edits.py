"""Performs one run with a loaded pipeline, from its inputs to its output."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from PIL import Image

from .frames import Frame, retime, shown, working_count, working_size
from .model_map import PipelineRow
from .pipeline import Pipeline
from .protocol import Input, RunRequest
from .read import image, video_frames
from .stages import Stages
from .styles import STYLES, Shot
from .windows import edit_in_windows
from .write import VideoWriter, write_image

# Reports a run's progress (0 to 1) and its stage. Raises RunCancelled if no caller is waiting for the run.
Report = Callable[[float, str], None]

# Records that a run is alive. Raises RunCancelled if no caller is waiting for the run.
Check = Callable[[], None]


class Edit:
    """One run of a pipeline."""

    def __init__(
        self, request: RunRequest, row: PipelineRow, pipeline: Pipeline, report: Report, check: Check, stages: Stages
    ) -> None:
        self._request, self._row, self._pipeline = request, row, pipeline
        self._report, self._check, self._stages = report, check, stages
        self._size = working_size(request.width, request.height, row.multiple, row.pixels)
        self._references: list[Image.Image] = []
        if request.reference is not None and row.references:
            self._references = [shown(image(request.reference))]

    def run(self, first: Image.Image | None = None) -> None:
        """Writes the output. If `first` is given, the clip begins with this picture, and its rest follows it."""
        takes = STYLES[self._row.class_name].takes
        if takes == "image":
            with self._stages("decode"):
                picture = image(self._data())
            made = self.picture(picture)
            with self._stages("encode"):
                write_image(self._request.output, made)
            return
        frames = self._made_from_text() if takes == "text" else self._edited(first)
        with VideoWriter(self._request.output, *self._size, self.rate) as writer:
            for frame in frames:
                self._check()
                with self._stages("encode"):
                    writer.write(frame)

    def picture(self, picture: Image.Image) -> Frame:
        """Edits a picture with a pipeline for images."""
        frame = np.asarray(picture.resize(self._size, Image.Resampling.LANCZOS), dtype=np.uint8)
        return self._denoise(0, 1, self._shot(1, [frame], self._references, []))[0]

    def first_picture(self) -> Image.Image:
        """Returns the clip's first picture, as edited by a pipeline for images."""
        with self._stages("decode"):
            frame = next(video_frames(self._data(), *self._size))
        return Image.fromarray(self.picture(Image.fromarray(frame)))

    @property
    def rate(self) -> int:
        """The frame rate of the output."""
        return self._row.fps or self._request.fps

    def _data(self) -> Input:
        assert self._request.data is not None  # the protocol requires data here
        return self._request.data

    def _working_count(self) -> int:
        """Returns the number of frames that the pipeline must make for the result."""
        return working_count(self._request.frame_count, self._request.fps, self._row.fps)

    def _edited(self, start: Image.Image | None) -> Iterator[Frame]:
        window = self._row.window
        total = self._working_count()
        windows = len(window.plan(total))
        first: list[Frame] = []
        kept = [] if start is None else [np.asarray(start.resize(self._size, Image.Resampling.LANCZOS), dtype=np.uint8)]

        def edit(number: int, frames: list[Frame], before: list[Frame]) -> list[Frame]:
            # The first picture already shows the reference.
            references = [] if kept else list(self._references)
            if first and (self._request.options or {}).get("self_anchor") and self._row.references:
                references.append(Image.fromarray(first[0]))
            made = self._denoise(number, windows, self._shot(len(frames), frames, references, before or kept))
            first.extend(made[:1])
            return made

        frames = self._stages.timed("decode", video_frames(self._data(), *self._size))
        return edit_in_windows(retime(frames, self._request.fps, self.rate, total), total, window, edit)

    def _made_from_text(self) -> Iterator[Frame]:
        window = self._row.window
        count = self._working_count()
        length = min(window.valid(count), window.frames)
        yield from self._denoise(0, 1, self._shot(length, [], [], []))[:count]

    def _denoise(self, number: int, windows: int, shot: Shot) -> list[Frame]:
        def stepped(share: float) -> None:
            self._report((number + share) / windows * 0.99, "denoise")

        with self._stages("denoise"):
            return self._pipeline.run(shot, stepped, self._check)

    def _shot(self, length: int, frames: list[Frame], references: list[Image.Image], before: list[Frame]) -> Shot:
        return Shot(self._request.prompt, self._request.seed, *self._size, length, frames, references, before)
