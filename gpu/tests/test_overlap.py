from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from cutroom_engine import edits
from cutroom_engine.edits import Edit
from cutroom_engine.frames import Frame
from cutroom_engine.overlap import ReadAhead, WriteBehind
from cutroom_engine.protocol import RunCancelled, RunError, RunRequest
from cutroom_engine.stages import Stages
from cutroom_engine.styles import Shot

from .conftest import Ask, Clip, Inverter, model_map


def threads() -> set[str]:
    return {thread.name for thread in threading.enumerate()} & {"read ahead", "write behind"}


def test_error_comes_after_all_items() -> None:
    def items() -> Iterator[int]:
        yield from range(20)
        raise OSError("the disk")

    got: list[int] = []
    with pytest.raises(OSError, match="the disk"), ReadAhead(items(), 3) as ahead:
        got.extend(ahead)
    assert got == list(range(20))
    assert not threads()


def test_reads_a_limited_number_ahead() -> None:
    taken: queue.Queue[int] = queue.Queue()

    def items() -> Iterator[int]:
        for i in range(100):
            taken.put(i)
            yield i

    with ReadAhead(items(), 3) as ahead:
        # Three items are in the queue, and one waits for space.
        assert [taken.get(timeout=120) for _ in range(4)] == [0, 1, 2, 3]
        assert next(ahead) == 0
        assert taken.get(timeout=120) == 4
        assert taken.empty()
    assert not threads()


def test_leaving_early_closes_the_iterator() -> None:
    closed = threading.Event()

    def items() -> Iterator[int]:
        try:
            yield from range(100)
        finally:
            closed.set()

    with ReadAhead(items(), 2) as ahead:
        next(ahead)
    assert closed.is_set()
    assert not threads()


def test_items_are_written_in_order() -> None:
    written: list[int] = []
    with WriteBehind(written.append, 3) as write:
        for i in range(50):
            write(i)
    assert written == list(range(50))
    assert not threads()


@pytest.mark.parametrize("count", [1, 50])
def test_write_error_is_raised_by_a_later_put(count: int) -> None:
    def full(_: int) -> None:
        raise OSError("full")

    def give() -> None:
        with WriteBehind(full, 3) as write:
            for i in range(count):
                write(i)

    with pytest.raises(OSError, match="full"):
        give()
    assert not threads()


def test_error_drops_unwritten_items() -> None:
    begun, go_on = threading.Event(), threading.Event()
    written: list[int] = []

    def slow(item: int) -> None:
        begun.set()
        go_on.wait(120)
        written.append(item)

    def give() -> None:
        with WriteBehind(slow, 10) as write:
            for i in range(5):
                write(i)
            begun.wait(120)
            threading.Timer(0.01, go_on.set).start()
            raise RunCancelled

    with pytest.raises(RunCancelled):
        give()
    assert written == [0], "it continued to write"
    assert not threads()


def run(request: RunRequest, model: Inverter) -> bytes:
    row = model_map().pipelines["edit"]
    Edit(request, row, model, lambda _, __: None, lambda: None, Stages()).run()
    return Path(request.output).read_bytes()


def silent(request: RunRequest) -> RunRequest:
    """Returns the request with an input that has no sound."""
    assert request.data is not None
    return request.model_copy(update={"data": request.data.model_copy(update={"audio": False})})


def test_windows_are_decoded_denoised_and_encoded_concurrently(
    clip: Clip, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoded, encoded = threading.Semaphore(0), threading.Semaphore(0)
    frames_of, write_of = edits.video_frames, edits.VideoWriter.write

    def counted(*arguments: object) -> Iterator[Frame]:
        for frame in frames_of(*arguments):  # type: ignore[arg-type]
            decoded.release()
            yield frame

    def written(writer: edits.VideoWriter, frame: Frame) -> None:
        write_of(writer, frame)
        encoded.release()

    monkeypatch.setattr(edits, "video_frames", counted)
    monkeypatch.setattr(edits.VideoWriter, "write", written)
    met: list[bool] = []

    class Waiting(Inverter):
        def run(self, shot: Shot, on_step: object, check: object) -> list[Frame]:
            # The clip has 25 frames, in windows of 9 that share 3. While a window is edited, the frames of the next
            # one are decoded, and the frames of the previous one are encoded.
            if not self.shots:
                met.extend(decoded.acquire(timeout=120) for _ in range(15))
            elif len(self.shots) == 1:
                met.extend(encoded.acquire(timeout=120) for _ in range(6))
            return super().run(shot, lambda _: None, lambda: None)

    data = clip(video="testsrc2=s=96x64:r=10:d=2.5", sound=None)
    run(silent(ask(data, duration=2.5)), Waiting())
    assert met == [True] * 21


@pytest.mark.parametrize("stop", [RunCancelled(), MemoryError()])
def test_cancelled_edit_ends_its_threads(clip: Clip, ask: Ask, stop: Exception) -> None:
    class Ending(Inverter):
        def run(self, shot: Shot, on_step: object, check: object) -> list[Frame]:
            if self.shots:
                raise stop
            return super().run(shot, lambda _: None, lambda: None)

    data = clip(video="testsrc2=s=96x64:r=10:d=2.5", sound="sine=d=2.5")
    with pytest.raises(type(stop)):
        run(ask(data, duration=2.5), Ending())
    assert not threads()


def test_decoding_error_ends_the_edit(ask: Ask, tmp_path: Path) -> None:
    noise = tmp_path / "noise.mp4"
    noise.write_bytes(np.random.default_rng(0).bytes(10_000))
    with pytest.raises(RunError, match="cannot be decoded"):
        run(silent(ask(noise)), Inverter())
    assert not threads()
