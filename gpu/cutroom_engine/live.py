"""Live sessions: models that stay in memory edit each session's newest frame. Sessions take turns on the device."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from . import live_wire as wire
from .model_map import LiveMap, LivePipelineRow, engine_name
from .pipeline import DeviceLost
from .protocol import RunCancelled, RunError, invalid_input

_logger = logging.getLogger(__name__)

# If no model has been called for this many seconds, the current frame or prompt counts as hung.
HUNG_AFTER = 60.0

# How long a shutdown waits for the current frame, in seconds.
_LAST = 3.0

_FULL = RunError("engine_error", "The engine has no capacity for another live session.", retryable=True)
_LOADING = RunError("engine_error", "The engine is still loading.", retryable=True)
_ENDING = RunError("engine_error", "The engine is stopping.", retryable=True)
_FAILED = RunError("engine_error", "The engine failed.", retryable=True)
_TOO_LARGE = RunError("engine_error", "The edit needs more memory than the engine has.")
_REPLACED = RunError("engine_error", "A later change has replaced this one.", retryable=True)
_NO_IMAGES = invalid_input("The engine does not support an image for this model.")

# Called whenever a model is about to compute. Raises RunCancelled to stop the model.
Check = Callable[[], None]

# Sends a message (a text, or the newest frame) to a client. Any thread may call it.
Notify = Callable[[Mapping[str, Any] | wire.Picture], None]


class LiveModel(Protocol):
    """A loaded model. One thread calls edit; another calls encode."""

    def warm(self, check: Check) -> None:
        """Makes a test edit, so that a session's first frame is not slower than later ones."""

    def encode(self, prompt: str) -> tuple[Any, str]:
        """Returns the encoded prompt, and a notice to the user about the prompt."""

    def edit(self, picture: wire.Picture, prompt: Any, seed: int, check: Check) -> wire.Picture:
        """Returns the edited frame, with the original's number and color range."""


class Session:
    """A session. Only Live changes its fields."""

    def __init__(self, model: str, pipeline: str, seed: int, notify: Notify) -> None:
        self.model, self.pipeline, self.seed, self.notify = model, pipeline, seed, notify
        # The encoded prompt for the next edits. At first, the prompt is empty.
        self.prompt: Any = None
        # The newest frame that waits, and the newest prompt that waits.
        self.picture: wire.Picture | None = None
        self.wish: dict[str, Any] | None = None
        # The time of the session's last turn.
        self.turn = 0.0
        self.ended = False

    def check(self) -> None:
        """Raises RunCancelled if the session has ended."""
        if self.ended:
            raise RunCancelled


class Live:
    """Edits frames for sessions. One thread loads the models, warms them up and then edits frames. Another thread
    prepares prompts, so that frames do not wait for them."""

    def __init__(
        self,
        rows: LiveMap,
        load: Callable[[LivePipelineRow], LiveModel],
        edited: Callable[[str, str, float], None] = lambda *_: None,
    ) -> None:
        """For each frame, edited is called with the model, the outcome and the seconds."""
        self._rows, self._load, self._edited = rows, load, edited
        # This lock protects all fields below and the sessions' fields. Waiting threads are notified of new work.
        self._changed = threading.Condition()
        self._models: dict[str, LiveModel] = {}
        # The encoded empty prompt of each model, and the pipelines that could not be loaded.
        self._empty: dict[str, Any] = {}
        self._failed: set[str] = set()
        self._sessions: list[Session] = []
        self._ending = False
        self._broken = False
        # When each working thread last showed that it is alive.
        self._quiet: dict[str, float] = {}
        self._threads = [
            threading.Thread(target=self._work, name="live", daemon=True),
            threading.Thread(target=self._prepare, name="live-changes", daemon=True),
        ]

    def start(self) -> None:
        for thread in self._threads if self._rows.pipelines else ():
            thread.start()

    def drain(self) -> None:
        with self._changed:
            self._ending = True
            sessions = list(self._sessions)
            self._changed.notify_all()
        for session in sessions:
            session.notify(_ENDING.line())

    def stop(self) -> None:
        """Drains, then waits for the threads for a limited time."""
        self.drain()
        with self._changed:
            for session in self._sessions:
                session.ended = True
        until = time.monotonic() + _LAST
        for thread in self._threads:
            if thread.is_alive():
                thread.join(max(0.0, until - time.monotonic()))

    @property
    def lost(self) -> bool:
        """Reports whether the device is lost or hangs, so that only a new process can edit."""
        now = time.monotonic()
        return self._broken or any(now - since > HUNG_AFTER for since in list(self._quiet.values()))

    def count(self) -> int:
        """Returns the number of sessions."""
        with self._changed:
            return len(self._sessions)

    def catalogue(self) -> dict[str, Any]:
        """Returns the live models that are loaded."""
        with self._changed:
            models = {
                model: {"ready": pipeline in self._models}
                for model, pipeline in self._rows.models.items()
                if pipeline not in self._failed
            }
            return {
                "version": wire.VERSION,
                "models": models,
                "sessions": self._rows.sessions,
                "open": len(self._sessions),
            }

    def open(self, model: str, seed: int, notify: Notify) -> Session:
        """Starts a session. Raises RunError if the session cannot start."""
        pipeline = self._rows.models.get(model)
        with self._changed:
            if pipeline is None or pipeline in self._failed:
                raise invalid_input("The engine does not edit this model live.")
            if self._ending or self._broken:
                raise _ENDING
            if pipeline not in self._models:
                raise _LOADING
            if len(self._sessions) >= self._rows.sessions:
                raise _FULL
            session = Session(model, pipeline, seed, notify)
            session.prompt = self._empty[pipeline]
            self._sessions.append(session)
        notify({"ready": {"engine": self._name(pipeline)}})
        return session

    def close(self, session: Session) -> None:
        """Ends a session. A running edit is stopped."""
        with self._changed:
            session.ended = True
            session.picture = None
            session.wish = None
            if session in self._sessions:
                self._sessions.remove(session)

    def take(self, session: Session, message: wire.Message) -> None:
        """Accepts a message from a session's client. The message replaces a waiting message of the same kind. Raises
        WireError."""
        if isinstance(message, dict) and not (
            isinstance(message.get("number"), int) and isinstance(message.get("prompt"), str)
        ):
            raise wire.WireError("the text is not a valid request")
        if isinstance(message, wire.Image):
            session.notify(_set(message.number, {} if message.empty else _NO_IMAGES.line()))
            return
        replaced = None
        with self._changed:
            if isinstance(message, wire.Picture):
                if session.picture is not None:
                    self._edited(session.model, "replaced", 0.0)
                session.picture = message
            else:
                replaced, session.wish = session.wish, message
            self._changed.notify_all()
        if replaced is not None:
            session.notify(_set(replaced["number"], _REPLACED.line()))

    def _name(self, pipeline: str) -> str:
        return engine_name(self._rows.pipelines[pipeline].weights, pipeline)

    def _alive(self) -> None:
        self._quiet[threading.current_thread().name] = time.monotonic()

    def _resting(self) -> None:
        self._quiet.pop(threading.current_thread().name, None)

    def _work(self) -> None:
        """Loads the models, then edits frames until the server stops."""
        for name, row in self._rows.pipelines.items():
            if not self._loaded(name, row):
                with self._changed:
                    self._failed.add(name)
        while (turn := self._next_picture()) is not None:
            session, picture = turn
            began = time.monotonic()
            outcome = self._edit(session, picture)
            self._resting()
            self._edited(session.model, outcome, time.monotonic() - began)

    def _loaded(self, name: str, row: LivePipelineRow) -> bool:
        """Loads a model and warms it up. Reports whether the model can be used."""
        began = time.monotonic()
        try:
            model = self._load(row)
            empty, _ = model.encode("")
            model.warm(self._ends)
        except RunCancelled:
            return False
        except DeviceLost:
            self._broken = True
            _logger.exception("the device is lost", extra={"pipeline": name})
            return False
        except Exception:
            _logger.exception("cannot load a live model; it is not served", extra={"pipeline": name})
            return False
        with self._changed:
            self._models[name], self._empty[name] = model, empty
        seconds = round(time.monotonic() - began, 3)
        _logger.info("a live model is ready", extra={"pipeline": name, "seconds": seconds})
        return True

    def _ends(self) -> None:
        if self._ending:
            raise RunCancelled

    def _next_picture(self) -> tuple[Session, wire.Picture] | None:
        """Waits for a frame, and returns the frame of the session that has waited longest for its turn. Returns None
        when the server stops."""
        with self._changed:
            while not (self._ending or self._broken):
                waiting = [session for session in self._sessions if session.picture is not None]
                if waiting:
                    session = min(waiting, key=lambda session: session.turn)
                    picture, session.picture, session.turn = session.picture, None, time.monotonic()
                    if picture is not None:
                        return session, picture
                self._changed.wait()
            return None

    def _edit(self, session: Session, picture: wire.Picture) -> str:
        """Edits a frame and returns the outcome as a word."""

        def check() -> None:
            self._alive()
            session.check()

        log = {"model": session.model, "size": f"{picture.width}x{picture.height}"}
        self._alive()
        try:
            model = self._models[session.pipeline]
            session.notify(model.edit(picture, session.prompt, session.seed, check))
            return "edited"
        except RunCancelled:
            return "cancelled"
        except RunError as error:
            session.notify({"refused": {"number": picture.number, **error.line()}})
            return error.code
        except DeviceLost:
            self._broken = True
            _logger.exception("the device is lost", extra=log)
            session.notify(_FAILED.line())
            return "device_lost"
        except MemoryError:
            _logger.warning("out of memory", extra=log, exc_info=True)
            session.notify({"refused": {"number": picture.number, **_TOO_LARGE.line()}})
            return "out_of_memory"
        except Exception:
            _logger.exception("cannot edit a picture", extra=log)
            session.notify(_FAILED.line())
            return "engine_error"

    def _prepare(self) -> None:
        """Prepares prompts until the server stops."""
        while (change := self._next_wish()) is not None:
            session, wish = change
            self._alive()
            line = self._prepared(session, wish["prompt"])
            self._resting()
            session.notify(_set(wish["number"], line))

    def _next_wish(self) -> tuple[Session, dict[str, Any]] | None:
        with self._changed:
            while not (self._ending or self._broken):
                for session in self._sessions:
                    if (wish := session.wish) is not None:
                        session.wish = None
                        # Move the session to the end of the queue.
                        self._sessions.remove(session)
                        self._sessions.append(session)
                        return session, wish
                self._changed.wait()
            return None

    def _prepared(self, session: Session, prompt: str) -> dict[str, Any]:
        """Encodes the session's prompt and returns the fields of its confirmation."""
        try:
            session.prompt, notice = self._models[session.pipeline].encode(prompt)
            reported = {"engine": self._name(session.pipeline)}
            return reported | {"notice": notice} if notice else reported
        except DeviceLost:
            self._broken = True
            _logger.exception("the device is lost", extra={"model": session.model})
        except Exception:
            _logger.exception("cannot prepare a prompt", extra={"model": session.model})
        return _FAILED.line()


def _set(number: int, reported: Mapping[str, Any]) -> dict[str, Any]:
    return {"set": {"number": number, **reported}}
