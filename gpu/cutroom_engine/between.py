"""Uses FFmpeg to interpolate frames, for models that work at a lower frame rate than the result."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import chain

import av
import av.error
import numpy as np
from av.filter import Graph

from .frames import Frame

# Estimate motion in both directions. Overlap the blocks, which hides their edges. At a cut, where motion cannot be
# followed, repeat the previous frame.
_OPTIONS = "mi_mode=mci:mc_mode=aobmc:me_mode=bidir:me=epzs:vsbmc=0:scd=fdiff"


def interpolate(frames: Iterator[Frame], rate: int, fps: int, count: int) -> Iterator[Frame]:
    """Converts frames at one rate to `count` frames at a higher rate. The last input frame is repeated as needed."""
    source = iter(frames)
    first = next(source)
    last = first
    made = 0

    def seen() -> Iterator[Frame]:
        nonlocal last
        for frame in chain([first], source):
            last = frame
            yield frame

    shown = first
    for number, frame in _filtered(seen(), rate, fps):
        # Show each frame until the next one.
        while made < min(number, count):
            yield shown
            made += 1
        shown = frame
        if made == count:
            return
    while made < count:
        yield shown
        made += 1
        shown = last


def _filtered(frames: Iterator[Frame], rate: int, fps: int) -> Iterator[tuple[int, Frame]]:
    """Yields frames with their index at the higher rate."""
    graph: Graph | None = None
    for number, frame in enumerate(frames):
        graph = graph or _graph(frame, rate, fps)
        given = av.VideoFrame.from_ndarray(frame, format="rgb24")
        given.pts, given.time_base = number, Fraction(1, rate)
        graph.push(given)
        yield from _pulled(graph, fps)
    if graph is not None:
        graph.push(None)
        yield from _pulled(graph, fps)


def _graph(frame: Frame, rate: int, fps: int) -> Graph:
    graph = Graph()
    height, width = frame.shape[:2]
    steps = [
        graph.add_buffer(width=width, height=height, format=av.VideoFormat("rgb24"), time_base=Fraction(1, rate)),
        # minterpolate does not support RGB. YUV with full color resolution loses nothing.
        graph.add("format", "yuv444p"),
        graph.add("minterpolate", f"fps={fps}:{_OPTIONS}"),
        graph.add("format", "rgb24"),
        graph.add("buffersink"),
    ]
    graph.link_nodes(*steps).configure()
    return graph


def _pulled(graph: Graph, fps: int) -> Iterator[tuple[int, Frame]]:
    """Yields the frames that the graph has finished."""
    while True:
        try:
            made = graph.pull()
        except (av.error.BlockingIOError, av.error.EOFError):
            return
        assert isinstance(made, av.VideoFrame)
        assert made.pts is not None
        assert made.time_base is not None
        number = round(made.pts * made.time_base * fps)
        yield number, np.asarray(made.to_ndarray(format="rgb24"), dtype=np.uint8)
