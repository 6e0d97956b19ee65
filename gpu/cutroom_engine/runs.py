"""Performs runs, one at a time on the device. Each caller is notified of its run's outcome."""

from __future__ import annotations

import errno
import logging
import os
import re
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import files
from .edits import Edit, Report
from .estimates import Estimates
from .metrics import Metrics
from .model_map import LivePipelineRow, ModelMap, PipelineRow, engine_name
from .pipeline import DeviceLost, WeightsError
from .protocol import EstimatedEdit, RunCancelled, RunError, RunRequest
from .residents import Residents
from .stages import Stages
from .styles import STYLES

_logger = logging.getLogger(__name__)

# After this many seconds a cancelled run counts as stuck. A denoising step of a large model takes less time.
STUCK_AFTER = 180.0

# Once its weights are loaded, a run counts as hung after this many seconds without a call of a model. The longest
# call takes much less time.
HUNG_AFTER = 300.0

# How long a shutdown waits for the run's next step, in seconds.
_LAST_STEP = 3.0

# The header of W3C Trace Context: version, trace id, parent id and flags.
_TRACEPARENT = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}(-.*)?")

_DISK_FULL = RunError("engine_error", "The disk is full, so the result could not be stored.")
_TOO_LARGE = RunError("engine_error", "The edit needs more memory than the engine has.")
_NO_WEIGHTS = RunError("engine_error", "The engine's weights are missing. The command cutroom doctor lists them.")
_BUSY = RunError("engine_error", "The engine has too many edits waiting.", retryable=True)
_ENDING = RunError("engine_error", "The engine is stopping.", retryable=True)
_CANCELLED = RunError("engine_error", "The edit was cancelled.", retryable=True)
_BROKEN = RunError("engine_error", "The engine has lost its device.", retryable=True)
_FAILED = RunError("engine_error", "The engine failed.", retryable=True)

Notify = Callable[[dict[str, Any]], None]


class Run:
    """An accepted run.

    notify receives the lines of the protocol. It is called in the device's thread, or in the thread that stops
    the server.
    """

    def __init__(self, request: RunRequest, notify: Notify, traceparent: str = "") -> None:
        self.request, self.image = request, request.kind == "image"
        self.stage = "wait"
        # Whether the run needs more memory than is free next to a video's pipeline.
        self.alone = False
        self.accepted_at = time.monotonic()
        self.log = {"job": request.job, "model": request.model}
        if found := _TRACEPARENT.fullmatch(traceparent):
            self.log["trace_id"] = found[1]
        self._notify = notify
        self._ended = threading.Lock()
        self._fraction = 0.0
        self._cancelled_at: float | None = None
        self._moved_at = self.accepted_at

    def cancel(self) -> None:
        """Ends the run at its next step."""
        if self._cancelled_at is None:
            self._cancelled_at = time.monotonic()

    def end(self, line: dict[str, Any]) -> None:
        """Sends the run's outcome unless an outcome was already sent."""
        if self._ended.acquire(blocking=False):
            self._notify(line)

    @property
    def cancelled(self) -> bool:
        """Reports whether the caller no longer waits for the run."""
        return self._cancelled_at is not None

    @property
    def cancelled_for(self) -> float:
        """Returns how many seconds ago the run was cancelled, or 0 if it was not."""
        return 0.0 if self._cancelled_at is None else time.monotonic() - self._cancelled_at

    def report(self, fraction: float, stage: str) -> None:
        """Sends the progress. Raises RunCancelled if no caller is waiting for the run."""
        self.check()
        self.stage = stage
        # A second attempt starts from the beginning, but the reported progress never decreases.
        self._fraction = max(self._fraction, min(fraction, 1.0))
        self._notify(self.line())

    @property
    def quiet_for(self) -> float:
        """Returns the seconds since a model of the run was last called, or 0 while models are loaded, which may take
        any time."""
        return 0.0 if self.stage in ("wait", "load") else time.monotonic() - self._moved_at

    def check(self) -> None:
        """Notes that the run is alive. Raises RunCancelled if no caller is waiting for the run."""
        self._moved_at = time.monotonic()
        if self.cancelled:
            raise RunCancelled

    def line(self) -> dict[str, Any]:
        """Returns the run's progress as a line of the protocol."""
        return {"progress": round(self._fraction, 4), "stage": self.stage}


class Runner:
    """Performs runs in a separate thread, one at a time.

    The sender of an image waits for the response. If the pipelines of the image and of a running video fit into memory
    together, the image runs between two steps of the video, at most one image per step. Otherwise images and videos
    alternate, so an image waits for at most one video. Among images and among videos, runs start in order of arrival.
    """

    def __init__(
        self,
        models: ModelMap,
        residents: Residents,
        metrics: Metrics,
        *,
        root: Path | None = None,
        waiting: int = 8,
        missing: Callable[[PipelineRow | LivePipelineRow], list[Path]] = files.missing,
    ) -> None:
        """missing returns the files that a row needs and that do not exist."""
        self._models = models
        self._residents = residents
        self._metrics = metrics
        self._root = root
        self._waiting = waiting
        self._missing = missing
        self._estimates = Estimates(models.pipelines, models.teraflops)
        # Hold this lock to add or remove runs, or to begin a stop. All three notify the waiting threads.
        self._changed = threading.Condition()
        # The accepted runs that have not ended yet, in order of arrival.
        self._runs: list[Run] = []
        self._current: Run | None = None
        # The video that waits while an image runs between two of its steps.
        self._paused: Run | None = None
        self._last_was_image = False
        self._stopped = False
        self._broken = False
        self._draining = False
        self._thread = threading.Thread(target=self._work, name="device", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def drain(self) -> None:
        """Rejects new runs and ends the current ones immediately. Callers do not have to wait for the next step, and
        learn that another server may perform their run."""
        with self._changed:
            self._draining = True
            runs = list(self._runs)
        for run in runs:
            run.cancel()
            run.end(_ENDING.line())

    def stop(self) -> None:
        """Drains, then waits for the thread for a limited time."""
        self.drain()
        with self._changed:
            self._stopped = True
            self._changed.notify()
        self._thread.join(_LAST_STEP)
        if not self._thread.is_alive() and not self._broken:
            self._residents.evict_all()

    @property
    def stuck(self) -> bool:
        """Reports whether a run hangs, or has not ended long after it was cancelled."""
        if (current := self._current) is None:
            return False
        return current.cancelled_for > STUCK_AFTER or current.quiet_for > HUNG_AFTER

    @property
    def lost(self) -> bool:
        """Reports whether only a new process can perform runs."""
        return self._broken or self.stuck

    def health(self) -> str:
        """Returns "ok", or the reason why no run is possible."""
        if self._broken:
            return "device lost"
        if self._draining:
            return "ending"
        if self.stuck:
            return "stuck"
        return "ok" if self._thread.is_alive() else "stopped"

    def unfinished(self) -> int:
        """Returns the number of accepted runs that have not ended yet."""
        with self._changed:
            return len(self._runs)

    def resident(self) -> list[str]:
        """The pipelines in memory."""
        return self._residents.names()

    def loaded(self) -> list[str]:
        """The models whose pipelines are all in memory."""
        resident = {*self._residents.names(), None}
        return [name for name, row in self._models.models.items() if {row.pipeline, row.first} <= resident]

    def missing(self) -> list[str]:
        """Returns the files that pipelines need and that do not exist."""
        models = self._models
        rows: list[PipelineRow | LivePipelineRow] = [*models.pipelines.values(), *models.live.pipelines.values()]
        return list(dict.fromkeys(str(path) for row in rows for path in self._missing(row)))

    def estimate(self, edit: EstimatedEdit) -> dict[str, Any] | None:
        """Returns the estimated seconds for each length of such an edit. Returns None if the edit is not supported or
        its time is unknown."""
        requests = [edit.request(length) for length in edit.lengths]
        try:
            name = self._pipeline_of(edit.request(0))
        except RunError:
            return None
        seconds = [self._estimates.seconds(name, request) for request in requests]
        if any(one is None for one in seconds):
            return None
        return {"seconds": [round(one or 0, 3) for one in seconds]}

    def submit(self, request: RunRequest, notify: Notify, traceparent: str = "") -> Run:
        """Accepts a run, or raises RunError.

        If traceparent (W3C Trace Context) is valid, the log lines of the run contain its trace id.
        """
        if any(self._missing(row) for row in self._rows_of(request)):
            raise _NO_WEIGHTS
        self._check_paths(request)
        self._check_length(request)
        run = Run(request, notify, traceparent)
        with self._changed:
            if self._broken:
                raise _BROKEN
            if self._draining:
                raise _ENDING
            # One of the runs is already running, so it does not count as waiting.
            if len(self._runs) > self._waiting:
                raise _BUSY
            self._runs.append(run)
            self._changed.notify()
        return run

    def _next(self) -> Run | None:
        """Waits for the next run. Returns None if the server stops."""
        with self._changed:
            while self._runs or not self._stopped:
                if self._runs:
                    run = min(self._runs, key=lambda run: run.image == self._last_was_image)
                    self._last_was_image = run.image
                    self._current = run
                    return run
                self._changed.wait()
            return None

    def _work(self) -> None:
        self._preload()
        while (run := self._next()) is not None:
            self._perform(run)

    def _preload(self) -> None:
        """Loads the pipelines for images, because the sender of an image waits for the response."""
        for name, row in self._models.pipelines.items():
            if row.takes == "image" and not self._missing(row):
                try:
                    self._residents.preload(name)
                except Exception:
                    _logger.exception("cannot load a pipeline", extra={"pipeline": name})

    def _perform(self, run: Run) -> None:
        line, outcome = _BROKEN.line(), "engine_error"
        stages = Stages()
        try:
            if not self._broken:
                line, outcome = self._outcome(run, stages)
        except _Postponed:
            return
        finally:
            self._current = self._paused
        with self._changed:
            self._runs.remove(run)
        self._metrics.ended(run.request.model, outcome, time.monotonic() - run.accepted_at, stages.seconds())
        run.end(line)

    def _perform_image(self, video: Run, name: str, stages: Stages) -> None:
        """Performs a waiting image between two steps of a video with this pipeline."""
        with self._changed:
            waiting = [run for run in self._runs if run.image and not run.alone]
        fitting = (run for run in waiting if self._residents.both_fit(self._pipeline_of(run.request), name))
        image = next(fitting, None)
        if image is None:
            return
        self._residents.get(name)  # so that the image's pipeline does not evict it
        began = time.monotonic()
        self._paused, self._current = video, image
        try:
            self._perform(image)
        finally:
            self._paused = None
        stages.pause("denoise", time.monotonic() - began)
        if self._broken:
            raise DeviceLost
        video.check()

    def _outcome(self, run: Run, stages: Stages) -> tuple[dict[str, Any], str]:
        """Performs a run. Returns the last line for the caller, and the outcome as a word."""
        log = run.log
        try:
            self._attempt(run, stages)
            size = os.path.getsize(run.request.output)
            _logger.info("run ended", extra={**log, "bytes": size, "stages": stages.seconds()})
            name = self._pipeline_of(run.request)
            engine = engine_name(self._models.pipelines[name].weights, name)
            result = {"bytes": size, "stages": stages.seconds(), "engine": engine}
            if not run.image:
                result["fps"] = self._rows_of(run.request)[-1].fps or run.request.fps
            return {"result": result}, "completed"
        except RunCancelled:
            _logger.info("run cancelled", extra=log)
            return _CANCELLED.line(), "cancelled"
        except RunError as error:
            _logger.warning(
                "run failed", extra={**log, "code": error.code, "reason": error.message}, exc_info=error.__cause__
            )
            return error.line(), error.code
        except DeviceLost:
            self._broken = True
            _logger.exception("the device is lost", extra=log)
            return _BROKEN.line(), "device_lost"
        except MemoryError:
            if self._paused is not None:
                _logger.info("out of memory; the image waits for the end of the video", extra=log)
                run.alone, run.stage = True, "wait"
                raise _Postponed from None
            _logger.warning("out of memory", extra=log, exc_info=True)
            return _TOO_LARGE.line(), "out_of_memory"
        except WeightsError:
            _logger.exception("the weights are missing", extra=log)
            return _NO_WEIGHTS.line(), "engine_error"
        except Exception as error:
            _logger.exception("run failed", extra=log)
            if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
                return _DISK_FULL.line(), "engine_error"
            return _FAILED.line(), "engine_error"

    def _attempt(self, run: Run, stages: Stages) -> None:
        name = self._pipeline_of(run.request)
        try:
            self._edit(run, name, stages)
            return
        except MemoryError:
            if self._paused is not None:
                raise
            _logger.warning("out of memory; trying again without other pipelines", extra=run.log)
        # Evict outside of the exception handler, because its traceback keeps tensors alive.
        self._residents.evict_all()
        self._edit(run, name, stages)

    def _edit(self, run: Run, name: str, stages: Stages) -> None:
        run.report(0, "load")
        for row in self._rows_of(run.request):
            if absent := self._missing(row):
                raise WeightsError(f"{absent[0]}: no such file")
        first, before = None, stages.working
        if (editor := self._models.models[run.request.model].first) is not None:
            first = self._begin(run, editor, lambda _, stage: run.report(0, stage), stages).first_picture()
            run.report(0, "load")

        def report(fraction: float, stage: str) -> None:
            run.report(fraction, stage)
            if not run.image:
                self._perform_image(run, name, stages)

        self._begin(run, name, report, stages).run(first)
        run.report(1, "encode")
        self._estimates.ended(name, run.request, stages.working - before)

    def _begin(self, run: Run, name: str, report: Report, stages: Stages) -> Edit:
        """Returns an edit with the pipeline, which is loaded if it is not in memory."""
        with stages("load"):
            pipeline = self._residents.get(name)
        run.report(0, "denoise")
        return Edit(run.request, self._models.pipelines[name], pipeline, report, run.check, stages)

    def _pipeline_of(self, request: RunRequest) -> str:
        row = self._models.models.get(request.model)
        if row is None:
            raise RunError("engine_error", f"The engine does not serve {request.model}.")
        name = row.pipeline
        style = STYLES[self._models.pipelines[name].class_name]
        wanted = {"image": "image", "text-to-video": "text"}.get(request.kind, "video")
        if style.takes != wanted:
            raise RunError(
                "engine_error", f"The engine's pipeline for {request.model} does not support {request.kind}."
            )
        if request.reference is not None and not self._models.pipelines[name].references:
            raise RunError("invalid_input", f"The engine does not support a reference image for {request.model}.")
        return name

    def _rows_of(self, request: RunRequest) -> list[PipelineRow]:
        """Returns the rows of the pipelines that the run needs, in the order of their use."""
        name, first = self._pipeline_of(request), self._models.models[request.model].first
        return [self._models.pipelines[one] for one in (first, name) if one is not None]

    def _check_paths(self, request: RunRequest) -> None:
        """Rejects paths that are not in the folder for runs."""
        folder = Path(request.folder)
        if not folder.is_absolute() or not folder.is_dir() or Path(request.output).parent != folder:
            raise RunError("engine_error", "The engine cannot reach the folder of the edit.")
        if self._root is None:
            return
        inputs = [source.path for source in (request.data, request.reference) if source is not None]
        for path in (request.folder, *inputs):
            if not Path(path).resolve().is_relative_to(self._root):
                raise RunError("engine_error", "The engine may not use the folder of the edit.")

    def _check_length(self, request: RunRequest) -> None:
        """Rejects a run in advance if it would probably not finish in time."""
        name = self._pipeline_of(request)
        if not self._estimates.too_long(name, request):
            return
        took = _spoken(self._estimates.seconds(name, request) or 0)
        said = f"The edit would take about {took} here, but only {_spoken(request.remaining)} remain."
        if request.data is not None and request.duration > 0:
            longest = self._estimates.longest(name, request)
            said += f" The longest clip that would finish in time is {longest} s long." if longest else ""
        raise RunError("invalid_input", said)


class _Postponed(Exception):
    """Raised if an image needs more memory than is free next to a video's pipeline."""


def _spoken(seconds: float) -> str:
    """Returns a duration in words."""
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} minutes"
