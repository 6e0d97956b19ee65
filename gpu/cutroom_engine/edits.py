"""Performs one run with a loaded pipeline, from its inputs to its output."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import numpy as np
from PIL import Image

from .between import interpolate
from .frames import Frame, retime, shown, working_count, working_size
from .model_map import PipelineRow
from .overlap import ReadAhead, WriteBehind
from .pipeline import Pipeline
from .protocol import Input, RunRequest
from .read import image, video_frames
from .sound import Sound
from .stages import Stages
from .styles import STYLES, Shot
from .windows import edit_in_windows
from .write import VideoWriter, write_image

# Reports a run's progress (0 to 1) and its stage. Raises RunCancelled if no caller is waiting for the run.
Report = Callable[[float, str], None]

# Records that a run is alive. Raises RunCancelled if no caller is waiting for the run.
Check = Callable[[], None]


# Frames are interpolated if the model's rate is below this fraction of the result's rate. Otherwise some are repeated.
_CLOSE = 0.9


class Edit:
    """One run of a pipeline.

    Decoding the next window, denoising the current one and encoding the previous one run at the same time. This keeps
    one more window of decoded and of encoded frames in memory.
    """

    def __init__(
        self,
        request: RunRequest,
        row: PipelineRow,
        pipeline: Pipeline,
        report: Report,
        check: Check,
        stages: Stages,
    ) -> None:
        self._request = request
        self._row = row
        self._pipeline = pipeline
        self._report = report
        self._check = check
        self._stages = stages
        self._size = working_size(request.width, request.height, row.multiple, row.pixels)
        self._references: list[Image.Image] = []
        if request.reference is not None and row.references:
            self._references = [shown(image(request.reference))]

    def run(self) -> None:
        takes = STYLES[self._row.class_name].takes
        if takes == "image":
            self._image(self._data())
        elif takes == "text":
            self._video(self._made_from_text(), None)
        else:
            with ExitStack() as ended:
                self._video(self._edited(self._decoded(self._data(), ended)), self._data())

    def _data(self) -> Input:
        assert self._request.data is not None  # the protocol requires data here
        return self._request.data

    def _image(self, data: Input) -> None:
        with self._stages("decode"):
            picture = image(data).resize(self._size, Image.Resampling.LANCZOS)
        shot = self._shot(1, [np.asarray(picture, dtype=np.uint8)], self._references, [])
        with self._stages("denoise"):
            made = self._pipeline.run(shot, lambda share: self._report(share * 0.99, "denoise"), self._check)
        with self._stages("encode"):
            write_image(self._request.output, made[0], self._request.width, self._request.height)

    def _video(self, frames: Iterator[Frame], sound_of: Input | None) -> None:
        """Converts frames from the model's frame rate to the result's, and writes them."""
        request = self._request
        with ExitStack() as ended:
            sound = None
            if sound_of is not None and sound_of.audio:
                sound = Sound(sound_of)
                ended.callback(sound.close)
            writer = ended.enter_context(VideoWriter(request.output, request.width, request.height, request.fps, sound))

            def encode(frame: Frame) -> None:
                with self._stages("encode"):
                    writer.write(frame)

            write = ended.enter_context(WriteBehind(encode, self._row.window.frames))
            for frame in self._retimed(frames):
                self._check()
                write(frame)

    def _retimed(self, frames: Iterator[Frame]) -> Iterator[Frame]:
        rate, fps, count = self._rate, self._request.fps, self._request.frame_count
        if rate < fps * _CLOSE:
            return interpolate(frames, rate, fps, count)
        return retime(frames, rate, fps, count)

    @property
    def _rate(self) -> int:
        return self._row.fps or self._request.fps

    def _working_count(self) -> int:
        """Returns the number of frames that the pipeline must make for the result."""
        return working_count(self._request.frame_count, self._request.fps, self._row.fps)

    def _decoded(self, data: Input, ended: ExitStack) -> Iterator[Frame]:
        """Yields the input's frames at the model's size and frame rate. Leaving `ended` stops the decoding."""
        frames = self._stages.timed("decode", video_frames(data, *self._size, self._rate, self._working_count()))
        return ended.enter_context(ReadAhead(frames, self._row.window.frames))

    def _edited(self, frames: Iterator[Frame]) -> Iterator[Frame]:
        window = self._row.window.window()
        total = self._working_count()
        windows = len(window.plan(total))
        first: list[Frame] = []

        def edit(number: int, frames: list[Frame], before: list[Frame]) -> list[Frame]:
            references = list(self._references)
            if first and self._request.flag("self_anchor") and self._row.references:
                references.append(Image.fromarray(first[0]))
            made = self._denoise(number, windows, self._shot(len(frames), frames, references, before))
            first.extend(made[:1])
            return made

        return edit_in_windows(frames, total, window, edit)

    def _made_from_text(self) -> Iterator[Frame]:
        window = self._row.window.window()
        length = min(window.valid(self._working_count()), window.frames)
        yield from self._denoise(0, 1, self._shot(length, [], [], []))

    def _denoise(self, number: int, windows: int, shot: Shot) -> list[Frame]:
        def stepped(share: float) -> None:
            self._report((number + share) / windows * 0.99, "denoise")

        with self._stages("denoise"):
            return self._pipeline.run(shot, stepped, self._check)

    def _shot(self, length: int, frames: list[Frame], references: list[Image.Image], before: list[Frame]) -> Shot:
        width, height = self._size
        return Shot(
            prompt=self._request.prompt,
            seed=self._request.seed,
            width=width,
            height=height,
            length=length,
            frames=frames,
            references=references,
            before=before,
            fps=self._rate,
        )
