"""The interface between a model and the rest of the server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from .frames import Frame
from .previews import Previews
from .styles import Shot


class Pipeline(Protocol):
    """A loaded model. One thread at a time uses it."""

    def run(
        self,
        shot: Shot,
        on_step: Callable[[float], None],
        check: Callable[[], None],
        previews: Previews | None = None,
    ) -> list[Frame]:
        """Makes the shot's frames. on_step is called after each denoising step with the completed
        fraction; check is called whenever the model is about to compute, inside steps and between
        them. An error that one of them raises ends the call. Wanted previews are offered after
        steps, if the model can draw them. They do not change the frames.

        Raises MemoryError if there is too little memory, and DeviceLost."""

    def close(self) -> None:
        """Releases its memory; it is not used again."""


class DeviceLost(Exception):
    """The device has an error from which only a new process recovers."""
