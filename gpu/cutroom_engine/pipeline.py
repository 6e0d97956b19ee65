"""The interface between a model and the rest of the server."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

from .frames import Frame
from .styles import Shot


class Pipeline(Protocol):
    """A loaded model. Only one thread at a time may use it."""

    def run(self, shot: Shot, on_step: Callable[[float], None], check: Callable[[], None]) -> list[Frame]:
        """Makes the shot's frames. on_step is called after each denoising step with the completed fraction. check is
        called whenever the model is about to compute, within steps and between them. If either raises an error, the
        call ends with that error.

        Raises MemoryError if there is not enough memory, and DeviceLost.
        """

    def close(self) -> None:
        """Releases the pipeline's memory. The pipeline must not be used afterwards."""


class DeviceLost(Exception):
    """The device has failed, and only a new process can use it again."""


class WeightsError(Exception):
    """The weights cannot be used. The message says why."""


# Hold this lock while you load a model. The libraries change global settings of PyTorch during that time, so a model
# that another thread creates at the same time may lack its weights. Editing does not need the lock.
LOADING = threading.RLock()
