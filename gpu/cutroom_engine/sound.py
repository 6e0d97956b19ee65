"""Reads an input's sound, cut to the length of the result's picture or padded with silence."""

from __future__ import annotations

from collections.abc import Iterator

import av
import av.error
import numpy as np
from numpy.typing import NDArray

from .protocol import Input
from .read import opened

RATE = 48_000

# Timestamp jumps below this, in seconds, do not count as gaps.
_TOLERANCE = 0.05


class Sound:
    """Yields stereo samples of the chosen audio track, piece by piece. Gaps are filled with silence, so that sound
    and picture stay in sync."""

    def __init__(self, source: Input) -> None:
        self._pieces = self._decoded(source)
        self._rest: NDArray[np.float32] = np.zeros((2, 0), dtype=np.float32)

    def take(self, samples: int) -> NDArray[np.float32]:
        """Returns the next samples, as an array of 2 x samples. After the track has ended, they are silent."""
        parts = [self._rest]
        held = self._rest.shape[1]
        while held < samples:
            piece = next(self._pieces, None)
            if piece is None:
                piece = np.zeros((2, samples - held), dtype=np.float32)
            parts.append(piece)
            held += piece.shape[1]
        joined = np.concatenate(parts, axis=1)
        self._rest = joined[:, samples:]
        return joined[:, :samples]

    def close(self) -> None:
        self._pieces.close()  # type: ignore[attr-defined]  # _pieces is a generator

    def _decoded(self, source: Input) -> Iterator[NDArray[np.float32]]:
        with opened(source) as container:
            if source.sound_track >= len(container.streams.audio):
                return
            track = container.streams.audio[source.sound_track]
            begin = (container.start_time or 0) / 1_000_000
            resampler, form = None, None
            position = 0
            for packet in container.demux(track):
                try:
                    decoded = packet.decode()
                except av.error.FFmpegError:
                    continue  # the packet is skipped, and leaves a silent gap
                for frame in decoded:
                    time = frame.time
                    if resampler is None or form != (frame.layout.name, frame.rate, frame.format.name):
                        # A resampler accepts only one format, but in recorded broadcasts the format may change.
                        form = (frame.layout.name, frame.rate, frame.format.name)
                        resampler = av.AudioResampler(format="fltp", layout="stereo", rate=RATE)
                    for part in resampler.resample(frame):
                        samples = np.asarray(part.to_ndarray(), dtype=np.float32)
                        if time is not None:
                            due = round((time - begin) * RATE)
                            if due - position > _TOLERANCE * RATE:
                                yield np.zeros((2, due - position), dtype=np.float32)
                                position = due
                            elif position == 0 and due < 0:
                                samples = samples[:, -due:]
                            time = None
                        position += samples.shape[1]
                        yield samples
