"""A worker's requests and their responses. shared/engine/engineserver documents the protocol."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

Kind = Literal["restyle", "edit", "try-on", "clip", "text-to-video", "image"]
Code = Literal["invalid_input", "engine_error"]


class Input(BaseModel):
    """An input file. Other fields are ignored."""

    model_config = ConfigDict(frozen=True)

    path: str
    mime: str


class RunRequest(BaseModel):
    """A run. Unknown fields come from later versions and are ignored."""

    model_config = ConfigDict(frozen=True)

    job: str
    model: str
    kind: Kind
    prompt: str = ""
    seed: int = Field(ge=0, le=2**32 - 1)
    options: dict[str, Any] | None = None
    data: Input | None = None
    reference: Input | None = None
    width: int = Field(ge=2, le=8192)
    height: int = Field(ge=2, le=8192)
    fps: int = Field(default=0, ge=0, le=120)
    duration: float = Field(default=0, ge=0, le=3600)
    # How many seconds remain until the run is stopped, or 0 if that is unknown.
    remaining: float = Field(default=0, ge=0)
    folder: str
    output: str

    @model_validator(mode="after")
    def _check(self) -> RunRequest:
        if self.data is None and self.kind != "text-to-video":
            raise ValueError("an edit needs data")
        if self.kind != "image" and self.fps < 1:
            raise ValueError("a video needs fps")
        return self

    @property
    def frame_count(self) -> int:
        """The number of frames in the result. It lasts as long as the input, and has at least one frame."""
        return max(1, math.floor(self.duration * self.fps + 0.5))


class EstimatedEdit(BaseModel):
    """A kind of edit, and the lengths in seconds for which estimates are requested."""

    model_config = ConfigDict(frozen=True)

    model: str
    kind: Kind
    reference: bool = False
    width: int = Field(ge=2, le=8192)
    height: int = Field(ge=2, le=8192)
    fps: int = Field(default=0, ge=0, le=120)
    lengths: list[Annotated[float, Field(ge=0, le=3600)]] = Field(max_length=64)

    def request(self, length: float) -> RunRequest:
        """Returns an edit with the given length. Its files do not exist."""
        data = None if self.kind == "text-to-video" else Input(path="", mime="")
        reference = Input(path="", mime="") if self.reference else None
        return RunRequest.model_construct(
            job="",
            model=self.model,
            kind=self.kind,
            data=data,
            reference=reference,
            width=self.width,
            height=self.height,
            fps=self.fps,
            duration=length,
        )


class EstimatesRequest(BaseModel):
    """The edits to estimate."""

    edits: list[EstimatedEdit] = Field(max_length=1000)


class RunError(Exception):
    """Ends a run with an error. The message is for the user: it must not contain paths or a library's messages."""

    def __init__(self, code: Code, message: str, *, retryable: bool = False) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.retryable = retryable

    def line(self) -> dict[str, Any]:
        """Returns the error as a line of the protocol."""
        return {"error": {"code": self.code, "message": self.message, "retryable": self.retryable}}


def invalid_input(message: str) -> RunError:
    """Returns an error that blames the input. A retry would fail in the same way."""
    return RunError("invalid_input", message)


class RunCancelled(Exception):
    """Ends a run because no caller is waiting for it."""
