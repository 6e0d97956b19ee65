"""Tests runs, with models that only change colors."""

from __future__ import annotations

import errno
import queue
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image

from cutroom_engine import edits, runs
from cutroom_engine.frames import Frame
from cutroom_engine.metrics import Metrics
from cutroom_engine.pipeline import DeviceLost, Pipeline, WeightsError
from cutroom_engine.protocol import RunError, RunRequest
from cutroom_engine.residents import Residents
from cutroom_engine.runs import Run, Runner
from cutroom_engine.styles import Shot

from .conftest import Ask, Clip, Inverter, model_map
from .test_media import difference, facts, read

MakeRunner = Callable[..., "World"]
Step, Check = Callable[[float], None], Callable[[], None]


class World:
    """A runner, and the models that it has loaded."""

    def __init__(
        self,
        model: Callable[[], Pipeline],
        root: Path | None = None,
        waiting: int = 8,
        load: Callable[[], None] = lambda: None,
        teraflops: float | None = None,
        memory: int | None = None,
        **pipeline: Any,
    ) -> None:
        models = model_map(teraflops=teraflops, **pipeline)
        self.loaded: list[Any] = []

        def load_one(_: object) -> Pipeline:
            load()
            self.loaded.append(model())
            return self.loaded[-1]

        self.metrics = Metrics()
        residents = Residents(models.pipelines, memory, load_one)
        self.runner = Runner(models, residents, self.metrics, root=root, waiting=waiting, missing=lambda _: [])
        self.runner.start()

    def begin(self, request: RunRequest) -> tuple[Run, queue.Queue[dict[str, Any]]]:
        lines: queue.Queue[dict[str, Any]] = queue.Queue()
        return self.runner.submit(request, lines.put), lines

    def run(self, request: RunRequest) -> list[dict[str, Any]]:
        """Performs a run and returns all lines that it sends."""
        _, lines = self.begin(request)
        return until_the_end(lines)


def until_the_end(lines: queue.Queue[dict[str, Any]]) -> list[dict[str, Any]]:
    got = [lines.get(timeout=120)]
    while not {"result", "error"} & set(got[-1]):
        got.append(lines.get(timeout=120))
    return got


@pytest.fixture
def world() -> Iterator[MakeRunner]:
    made: list[World] = []

    def make(model: Callable[[], Pipeline] = Inverter, **options: Any) -> World:
        made.append(World(model, **options))
        return made[-1]

    yield make
    for one in made:
        one.runner.stop()


def test_clip_is_edited(world: MakeRunner, clip: Clip, ask: Ask) -> None:
    data = clip("color=c=red:s=96x64:r=10:d=0.5")
    request = ask(data)
    lines = world().run(request)
    result = lines[-1]["result"]
    assert result["bytes"] == Path(request.output).stat().st_size
    assert set(result["stages"]) == {"load", "decode", "denoise", "encode"}
    assert result["engine"] == "edit"
    named = world(weights="/models/wan/wan2.1-vace-1.3b" + "x" * 60)
    assert named.run(ask(data))[-1]["result"]["engine"] == "wan2.1-vace-1.3b" + "x" * 48
    fractions = [line["progress"] for line in lines[:-1]]
    assert fractions == sorted(fractions)
    assert fractions[-1] == 1
    assert [line["stage"] for line in lines[:-1]] == ["load", "denoise", "denoise", "denoise", "encode"]
    assert result["fps"] == 10
    frames = read(Path(request.output))
    assert len(frames) == 5
    assert difference(frames[0][32, 48], np.array([1, 255, 255])) < 8  # the inverse of red is cyan


def test_long_clip_is_edited_in_windows(world: MakeRunner, clip: Clip, ask: Ask) -> None:
    request = ask(clip("testsrc2=s=96x64:r=10:d=2.5"), duration=2.5)
    place = world()
    lines = place.run(request)
    assert "result" in lines[-1]
    assert facts(Path(request.output))["nb_frames"] == "25"
    shots = place.loaded[0].shots
    assert len(shots) == 4
    assert {shot.length for shot in shots} <= {5, 9}
    assert [len(shot.before) for shot in shots] == [0, 3, 3, 3]
    assert {shot.seed for shot in shots} == {7}
    fractions = [line["progress"] for line in lines[:-1]]
    assert fractions == sorted(fractions)
    assert len(set(fractions)) >= 8


@pytest.mark.parametrize(("anchored", "references"), [(True, [1, 2, 2, 2]), (False, [1, 1, 1, 1])])
def test_first_frame_can_be_a_reference_for_later_windows(
    world: MakeRunner, clip: Clip, ask: Ask, picture: Path, anchored: bool, references: list[int]
) -> None:
    data = clip("testsrc2=s=96x64:r=10:d=2.5")
    place = world()
    place.run(ask(data, duration=2.5, reference=picture, options={"self_anchor": anchored}))
    assert [len(shot.references) for shot in place.loaded[0].shots] == references


def test_pipeline_works_at_its_own_rate_and_size(world: MakeRunner, clip: Clip, ask: Ask) -> None:
    request = ask(clip("testsrc2=s=96x64:r=20:d=0.5"), width=90, height=50, fps=20)
    place = world(fps=5, multiple=16, pixels=64 * 48)
    assert place.run(request)[-1]["result"]["fps"] == 5
    shot = place.loaded[0].shots[0]
    assert (shot.width, shot.height) == (64, 32)
    assert shot.frames[0].shape == (32, 64, 3)
    found = facts(Path(request.output))
    assert (found["width"], found["height"], found["nb_frames"], found["r_frame_rate"]) == (64, 32, "3", "5/1")


def test_first_frame_is_edited_and_kept(world: MakeRunner, clip: Clip, ask: Ask, picture: Path) -> None:
    """The model for images edits the first frame, after the prompt and the reference. The other model continues it."""
    place = world(window={"frames": 5, "overlap": 1, "step": 4})
    lines = place.run(ask(clip("color=c=red:s=96x64:r=10:d=0.9"), model="gen-2.1", duration=0.9, reference=picture))
    assert "result" in lines[-1]
    image, video = place.loaded
    (edited,) = image.shots
    assert (edited.length, edited.prompt, len(edited.references)) == (1, "winter", 1)
    assert [len(shot.before) for shot in video.shots] == [1, 1]
    assert difference(video.shots[0].before[0][32, 48], np.array([1, 255, 255])) < 8
    assert not any(shot.references for shot in video.shots), "the first frame already shows the reference"
    fractions = [line["progress"] for line in lines[:-1]]
    assert fractions == sorted(fractions)


def test_video_is_made_from_text(world: MakeRunner, ask: Ask) -> None:
    request = ask(model="gen-pro-t2v", kind="text-to-video", duration=2)
    place = world()
    assert "result" in place.run(request)[-1]
    assert place.loaded[0].shots[0].length == 9
    assert facts(Path(request.output))["nb_frames"] == "9"


@pytest.mark.parametrize(
    ("duration", "fps", "frames"), [(0, 10, 1), (0.04, 10, 1), (0.5, 5, 3), (1.5, 1, 2), (0.14, 10, 1), (5, 25, 125)]
)
def test_result_is_as_long_as_its_input(ask: Ask, duration: float, fps: int, frames: int) -> None:
    assert ask(model="gen-pro-t2v", kind="text-to-video", duration=duration, fps=fps).frame_count == frames


def test_image_is_edited(world: MakeRunner, ask: Ask, picture: Path, tmp_path: Path) -> None:
    output = tmp_path / "out"
    output.mkdir()
    request = ask(
        picture,
        mime="image/png",
        model="gen-image-2",
        kind="image",
        fps=0,
        duration=0,
        reference=picture,
        folder=str(output),
        output=str(output / "output.png"),
    )
    place = world()
    assert "result" in place.run(request)[-1]
    with Image.open(request.output) as edited:
        assert edited.size == (96, 64)
    assert len(place.loaded[0].shots[0].references) == 1


@pytest.mark.parametrize(
    ("changes", "code", "says"),
    [
        ({"model": "gen-9"}, "engine_error", "does not serve gen-9"),
        ({"model": "gen-image-2"}, "engine_error", "does not support edit"),
        (
            {"model": "gen-pro-t2v", "kind": "text-to-video", "reference": "picture"},
            "invalid_input",
            "does not support a reference image",
        ),
        ({"folder": "/nowhere", "output": "/nowhere/output.mp4"}, "engine_error", "cannot reach"),
        ({"output": "/elsewhere/output.mp4"}, "engine_error", "cannot reach"),
        ({"folder": ".", "output": "output.mp4"}, "engine_error", "cannot reach"),
    ],
)
def test_invalid_runs_are_rejected_immediately(
    world: MakeRunner, ask: Ask, clip: Clip, picture: Path, changes: dict[str, Any], code: str, says: str
) -> None:
    if "reference" in changes:
        changes = changes | {"reference": picture}
    with pytest.raises(RunError, match=says) as raised:
        world().begin(ask(clip(), **changes))
    assert (raised.value.code, raised.value.retryable) == (code, False)


def test_clip_that_takes_too_long_is_rejected_immediately(world: MakeRunner, ask: Ask, clip: Clip) -> None:
    place = world(shape="wan2.1-vace-14b", teraflops=1)
    data = clip()
    with pytest.raises(RunError) as raised:
        place.begin(ask(data, width=832, height=480, duration=300, remaining=597))
    assert (raised.value.code, raised.value.retryable) == ("invalid_input", False)
    assert "would take about" in raised.value.message
    assert "only 10 minutes remain" in raised.value.message
    assert "result" in place.run(ask(data, remaining=597))[-1]


def test_rejection_names_the_longest_possible_clip(world: MakeRunner, ask: Ask, clip: Clip) -> None:
    place = world(teraflops=100)
    data = clip()

    def request(seconds: int) -> RunRequest:
        return ask(data, width=832, height=480, duration=seconds, remaining=597)

    with pytest.raises(RunError) as raised:
        place.begin(request(300))
    found = re.search(r"The longest clip that would finish in time is (\d+) s long\.$", raised.value.message)
    assert found is not None, raised.value.message
    longest = int(found[1])
    assert 1 < longest < 300
    with pytest.raises(RunError, match=f"{longest} s long"):
        place.begin(request(longest + 1))
    run, lines = place.begin(request(longest))
    run.cancel()
    until_the_end(lines)


def test_paths_outside_of_the_shared_folder_are_rejected(
    world: MakeRunner, ask: Ask, clip: Clip, tmp_path: Path
) -> None:
    inside = ask(clip())
    assert "result" in world(root=tmp_path).run(inside)[-1]
    (tmp_path / "other").mkdir()
    place = world(root=tmp_path / "other")
    with pytest.raises(RunError, match="may not use"):
        place.begin(inside)
    link = tmp_path / "other" / "link"
    link.symlink_to(inside.folder)
    with pytest.raises(RunError, match="may not use"):
        place.begin(inside.model_copy(update={"folder": str(link), "output": str(link / "output.mp4")}))


class Failing(Inverter):
    """A model that fails in its first calls."""

    def __init__(self, failures: list[Exception]) -> None:
        super().__init__()
        self._failures = failures

    def run(self, shot: Shot, on_step: Step, check: Check) -> list[Frame]:
        on_step(0.5)
        if self._failures:
            raise self._failures.pop(0)
        return super().run(shot, on_step, check)


def test_run_is_retried_after_out_of_memory(world: MakeRunner, ask: Ask, clip: Clip) -> None:
    failures: list[Exception] = [MemoryError("CUDA out of memory")]
    place = world(lambda: Failing(failures))
    lines = place.run(ask(clip()))
    assert "result" in lines[-1]
    assert place.loaded[0].closed
    assert len(place.loaded) == 2
    fractions = [line["progress"] for line in lines[:-1]]
    assert fractions == sorted(fractions)


@pytest.mark.parametrize(
    ("failure", "message", "retryable"),
    [
        (MemoryError("CUDA out of memory"), "more memory than the engine has", False),
        (OSError(errno.ENOSPC, "No space left on device"), "disk is full", False),
        (RuntimeError("/secret/path: shape mismatch"), "The engine failed.", True),
    ],
)
def test_failure_ends_only_the_run(
    world: MakeRunner, ask: Ask, clip: Clip, failure: Exception, message: str, retryable: bool
) -> None:
    failures = [failure, failure] if isinstance(failure, MemoryError) else [failure]
    place = world(lambda: Failing(failures))
    error = place.run(ask(clip()))[-1]["error"]
    assert (error["code"], error["retryable"]) == ("engine_error", retryable)
    assert message in error["message"]
    assert "result" in place.run(ask(clip()))[-1]
    assert place.runner.health() == "ok"


def test_health_reports_lost_device(world: MakeRunner, ask: Ask, clip: Clip) -> None:
    place = world(lambda: Failing([DeviceLost("CUDA error")]))
    error = place.run(ask(clip()))[-1]["error"]
    assert (error["code"], error["retryable"]) == ("engine_error", True)
    assert place.runner.health() == "device lost"
    with pytest.raises(RunError, match="lost its device"):
        place.begin(ask(clip()))


class Endless(Inverter):
    """A model that takes steps until it is stopped. If last is given, each step waits for an item in it."""

    def __init__(self, stepped: queue.Queue[None], last: queue.Queue[None] | None = None) -> None:
        super().__init__()
        self._stepped, self._last = stepped, last

    def run(self, shot: Shot, on_step: Step, check: Check) -> list[Frame]:
        while True:
            self._stepped.put(None)
            if self._last is not None:
                self._last.get()
            time.sleep(0.001)
            on_step(0.5)


@pytest.mark.parametrize("stage", ["load", "decode", "denoise", "encode"])
def test_run_can_be_cancelled_in_every_stage(
    world: MakeRunner, ask: Ask, clip: Clip, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    begun: queue.Queue[Run] = queue.Queue()
    steps: list[float] = []
    known: dict[str, Any] = {"video_frames": edits.video_frames, "write": edits.VideoWriter.write}

    def cancel(at: str) -> None:
        if at == stage:
            run = begun.get(timeout=120)
            run.cancel()
            begun.put(run)

    class Stepping(Inverter):
        def run(self, shot: Shot, on_step: Step, check: Check) -> list[Frame]:
            cancel("denoise")

            def stepped(share: float) -> None:
                on_step(share)
                steps.append(share)

            return super().run(shot, stepped, check)

    def decoded(*arguments: Any) -> Iterator[Frame]:
        cancel("decode")
        yield from known["video_frames"](*arguments)

    def written(writer: Any, frame: Frame) -> None:
        cancel("encode")
        known["write"](writer, frame)

    monkeypatch.setattr(edits, "video_frames", decoded)
    monkeypatch.setattr(edits.VideoWriter, "write", written)
    place = world(Stepping, load=lambda: cancel("load"))
    run, lines = place.begin(ask(clip()))
    begun.put(run)
    assert "cancelled" in until_the_end(lines)[-1]["error"]["message"]
    assert len(steps) == (2 if stage == "encode" else 0), "it continued for another step"
    stage = ""
    assert "result" in place.run(ask(clip()))[-1], "it serves the next run"


def test_run_is_cancelled_between_steps(world: MakeRunner, ask: Ask, clip: Clip) -> None:
    stepped: queue.Queue[None] = queue.Queue()
    place = world(lambda: Endless(stepped))
    run, lines = place.begin(ask(clip()))
    waiting, others = place.begin(ask(clip()))
    stepped.get(timeout=120)
    waiting.cancel()
    run.cancel()
    assert "error" in until_the_end(lines)[-1]
    assert until_the_end(others)[-1]["error"]["retryable"], "a waiting run must be cancelled too"


def test_health_reports_hung_run(world: MakeRunner, ask: Ask, clip: Clip, monkeypatch: pytest.MonkeyPatch) -> None:
    stepped: queue.Queue[None] = queue.Queue()
    last: queue.Queue[None] = queue.Queue()
    place = world(lambda: Endless(stepped, last))
    run, lines = place.begin(ask(clip()))
    stepped.get(timeout=120)
    run.cancel()
    assert place.runner.health() == "ok"
    monkeypatch.setattr(runs, "STUCK_AFTER", 0.0)
    assert place.runner.health() == "stuck"
    last.put(None)
    until_the_end(lines)


def test_silence_counts_as_hang_after_five_minutes(
    world: MakeRunner, ask: Ask, clip: Clip, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(runs, "time", SimpleNamespace(monotonic=lambda: now[0]))
    loading: queue.Queue[None] = queue.Queue()
    stepped: queue.Queue[None] = queue.Queue()
    last: queue.Queue[None] = queue.Queue()
    loaded: queue.Queue[None] = queue.Queue()

    def load() -> None:
        loading.put(None)
        loaded.get(timeout=120)

    place = world(lambda: Endless(stepped, last), load=load)
    run, lines = place.begin(ask(clip()))
    loading.get(timeout=120)
    now[0] += 3000
    assert place.runner.health() == "ok", "loading has no time limit"
    loaded.put(None)
    for _ in range(5):
        stepped.get(timeout=120)
        now[0] += 299
        assert place.runner.health() == "ok"
        last.put(None)
    stepped.get(timeout=120)
    now[0] += 301
    assert place.runner.health() == "stuck"
    run.cancel()
    last.put(None)
    until_the_end(lines)


def test_more_runs_than_may_wait_are_rejected(world: MakeRunner, ask: Ask, clip: Clip) -> None:
    stepped: queue.Queue[None] = queue.Queue()
    place = world(lambda: Endless(stepped), waiting=2)
    data = clip()
    begun = [place.begin(ask(data))]
    stepped.get(timeout=120)
    begun += [place.begin(ask(data)), place.begin(ask(data))]
    with pytest.raises(RunError, match="too many") as raised:
        place.begin(ask(data))
    assert raised.value.retryable
    for run, _ in begun:
        run.cancel()
    for _, lines in begun:
        until_the_end(lines)


def test_stopping_server_returns_runs_immediately(world: MakeRunner, ask: Ask, clip: Clip) -> None:
    stepped: queue.Queue[None] = queue.Queue()
    last: queue.Queue[None] = queue.Queue()
    place = world(lambda: Endless(stepped, last))
    data = clip()
    _, lines = place.begin(ask(data))
    _, others = place.begin(ask(data))
    stepped.get(timeout=120)
    place.runner.drain()  # the run is in the middle of a step
    for each in (lines, others):
        error = until_the_end(each)[-1]["error"]
        assert ("engine is stopping" in error["message"], error["retryable"]) == (True, True)
    assert place.runner.health() == "ending"
    with pytest.raises(RunError, match="engine is stopping"):
        place.begin(ask(data))
    last.put(None)
    place.runner.stop()
    assert lines.empty(), "a run ended twice"
    assert others.empty(), "a run ended twice"


def test_images_and_videos_take_turns(world: MakeRunner, ask: Ask, clip: Clip, picture: Path) -> None:
    """Without memory for two pipelines, an image waits for at most one video, and a video for at most one image."""
    begun, go_on = queue.Queue[str](), queue.Queue[None]()

    class Turn(Inverter):
        def run(self, shot: Shot, on_step: Step, check: Check) -> list[Frame]:
            begun.put(shot.prompt)
            go_on.get(timeout=120)
            return super().run(shot, on_step, check)

    place = world(Turn)
    data = clip()

    def video(name: str) -> RunRequest:
        return ask(data, prompt=name)

    asked = [video("video 1"), video("video 2"), video("video 3")]
    asked += [still(ask, picture, prompt=name) for name in ("image 1", "image 2")]
    first = [place.begin(asked[0])[1]]
    order = [begun.get(timeout=120)]
    rest = [place.begin(request)[1] for request in asked[1:]]
    for _ in rest:
        go_on.put(None)
        order.append(begun.get(timeout=120))
    go_on.put(None)
    for lines in first + rest:
        assert "result" in until_the_end(lines)[-1]
    assert order == ["video 1", "image 1", "video 2", "image 2", "video 3"]


def test_unusable_weights_fail_the_run(world: MakeRunner, ask: Ask, clip: Clip) -> None:
    def fail() -> None:
        raise WeightsError("/secret/path: none of its layers is one of WanPipeline")

    error = world(load=fail).run(ask(clip()))[-1]["error"]
    message = "The engine's weights are missing. The command cutroom doctor lists them."
    assert error == {"code": "engine_error", "message": message, "retryable": False}


class Gated(Inverter):
    """A model whose videos wait before each step. Images fail as long as there are failures left."""

    def __init__(self, stepped: queue.Queue[None], go_on: queue.Queue[None], failures: list[Exception]) -> None:
        super().__init__()
        self._stepped, self._go_on, self._failures = stepped, go_on, failures

    def run(self, shot: Shot, on_step: Step, check: Check) -> list[Frame]:
        def gated(share: float) -> None:
            self._stepped.put(None)
            self._go_on.get(timeout=120)
            on_step(share)

        if shot.length == 1 and self._failures:
            raise self._failures.pop(0)
        return super().run(shot, on_step if shot.length == 1 else gated, check)


class Busy:
    """A server with much memory that performs a video, one step at a time."""

    def __init__(self, world: MakeRunner, ask: Ask, data: Path, *failures: Exception) -> None:
        self.stepped, self.go_on = queue.Queue[None](), queue.Queue[None]()
        self.place = world(lambda: Gated(self.stepped, self.go_on, list(failures)), memory=2**40)
        self.video, self.lines = self.place.begin(ask(data, duration=1.7))
        self.stepped.get(timeout=120)

    def step(self) -> None:
        self.go_on.put(None)
        self.stepped.get(timeout=120)

    def finish(self) -> list[dict[str, Any]]:
        for _ in range(6):
            self.go_on.put(None)
        return until_the_end(self.lines)


def still(ask: Ask, picture: Path, **changes: Any) -> RunRequest:
    request = ask(picture, mime="image/png", model="gen-image-2", kind="image", **changes)
    return request.model_copy(update={"output": request.folder + "/output.png"})


def test_images_run_between_the_steps_of_a_video(world: MakeRunner, ask: Ask, clip: Clip, picture: Path) -> None:
    data = clip("testsrc2=s=96x64:r=10:d=1.7")
    busy = Busy(world, ask, data)
    runner = busy.place.runner
    assert runner.resident() == ["image", "edit"], "the pipeline for images was not loaded in advance"
    assert runner.loaded() == ["gen-2.5", "gen-image-2"]
    both = [busy.place.begin(still(ask, picture))[1] for _ in range(2)]
    busy.step()
    assert "result" in until_the_end(both[0])[-1]
    assert both[1].empty(), "more than one image ran in a step"
    busy.step()
    assert "result" in until_the_end(both[1])[-1]
    assert runner.unfinished() == 1, "the video ended first"
    assert "result" in busy.finish()[-1]
    assert len(busy.place.loaded) == 2, "a pipeline was loaded twice"
    alone = ask(data, duration=1.7)
    world().run(alone)
    assert Path(busy.video.request.output).read_bytes() == Path(alone.output).read_bytes()


def test_image_that_does_not_fit_waits_for_the_video(world: MakeRunner, ask: Ask, clip: Clip, picture: Path) -> None:
    busy = Busy(world, ask, clip("testsrc2=s=96x64:r=10:d=1.7"), MemoryError())
    _, lines = busy.place.begin(still(ask, picture))
    busy.step()
    assert "result" in busy.finish()[-1]
    assert "result" in until_the_end(lines)[-1]
    assert not any(model.closed for model in busy.place.loaded)


def test_image_that_loses_the_device_ends_the_video(world: MakeRunner, ask: Ask, clip: Clip, picture: Path) -> None:
    busy = Busy(world, ask, clip("testsrc2=s=96x64:r=10:d=1.7"), DeviceLost())
    _, lines = busy.place.begin(still(ask, picture))
    busy.go_on.put(None)
    for ended in (until_the_end(lines), until_the_end(busy.lines)):
        assert ended[-1]["error"]["message"] == "The engine has lost its device."
    assert busy.place.runner.health() == "device lost"


def test_video_can_be_cancelled_while_an_image_waits(world: MakeRunner, ask: Ask, clip: Clip, picture: Path) -> None:
    busy = Busy(world, ask, clip("testsrc2=s=96x64:r=10:d=1.7"))
    _, lines = busy.place.begin(still(ask, picture))
    busy.video.cancel()
    busy.go_on.put(None)
    assert "cancelled" in until_the_end(busy.lines)[-1]["error"]["message"]
    assert "result" in until_the_end(lines)[-1]


@pytest.mark.parametrize(
    ("traceparent", "trace"),
    [
        ("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "4bf92f3577b34da6a3ce929d0e0e4736"),
        ("cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-later", "4bf92f3577b34da6a3ce929d0e0e4736"),
        ("00-4BF9-00f067aa0ba902b7-01", None),
        ("", None),
    ],
)
def test_log_contains_the_trace_id(
    world: MakeRunner, ask: Ask, clip: Clip, caplog: pytest.LogCaptureFixture, traceparent: str, trace: str | None
) -> None:
    caplog.set_level("INFO")
    lines: queue.Queue[dict[str, Any]] = queue.Queue()
    world().runner.submit(ask(clip()), lines.put, traceparent)
    until_the_end(lines)
    ended = next(record for record in caplog.records if record.message == "run ended")
    assert getattr(ended, "trace_id", None) == trace


def test_runs_are_counted(world: MakeRunner, ask: Ask, clip: Clip, tmp_path: Path) -> None:
    noise = tmp_path / "noise.mp4"
    noise.write_bytes(bytes(range(256)) * 100)
    place = world()
    place.metrics.read_off(place.runner.unfinished, place.runner.resident, lambda: {"total": 2**30}, lambda: 0)
    place.run(ask(clip()))
    place.run(ask(noise))
    said = place.metrics.text().decode()
    for line in (
        'cutroom_engine_runs_total{model="gen-2.5",outcome="completed"} 1.0',
        'cutroom_engine_runs_total{model="gen-2.5",outcome="engine_error"} 1.0',
        'cutroom_engine_run_seconds_count{model="gen-2.5"} 2.0',
        "cutroom_engine_unfinished_runs 0.0",
        'cutroom_engine_resident{pipeline="edit"} 1.0',
        'cutroom_engine_memory_bytes{kind="total"} 1.073741824e+09',
    ):
        assert line in said.splitlines()
    assert 'cutroom_engine_stage_seconds_total{model="gen-2.5",stage="denoise"}' in said
