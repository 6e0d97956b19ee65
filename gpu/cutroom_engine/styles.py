"""Defines how to call each class of pipeline.

This module knows the arguments of the classes, but does not import their libraries.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from PIL import Image

from .controls import Mask, conditioned
from .frames import Frame, shown


@dataclass(frozen=True)
class Shot:
    """The input of one call of a pipeline: a window of a clip, an entire short clip, or an image."""

    prompt: str
    seed: int
    width: int
    height: int
    # The number of frames to make. It is 1 for an image.
    length: int
    # The frames to edit, as many as length. Empty for text to video.
    frames: list[Frame] = field(default_factory=list)
    # Pictures that show how the result should look.
    references: list[Image.Image] = field(default_factory=list)
    # The first frames of the result, which the previous window has already made.
    before: list[Frame] = field(default_factory=list)
    # For classes that are conditioned on pictures of the clip: the control for each frame (empty if there is none),
    # and the area to repaint in each frame (empty for the whole frame).
    control: list[Frame] = field(default_factory=list)
    masks: list[Mask] = field(default_factory=list)


@dataclass(frozen=True)
class Style:
    """How to call a class of pipeline."""

    takes: Literal["video", "text", "image"]
    arguments: Callable[[Shot], dict[str, Any]]
    # Whether the class accepts reference images.
    references: bool = False
    # Whether a control and a mask determine which parts of the clip are kept.
    conditioned: bool = False
    # The names of the arguments for the strength of guidance and for the negative prompt.
    guidance: str = "guidance_scale"
    negative: str | None = "negative_prompt"


def _pictures(frames: list[Frame]) -> list[Image.Image]:
    return [Image.fromarray(frame) for frame in frames]


def _sized(shot: Shot) -> dict[str, Any]:
    return {"prompt": shot.prompt, "width": shot.width, "height": shot.height}


def _text_to_video(shot: Shot) -> dict[str, Any]:
    return {**_sized(shot), "num_frames": shot.length}


def _vace(shot: Shot) -> dict[str, Any]:
    # White areas of the mask are repainted: as the control in the video says, or freely if the video is gray there.
    # Black areas are kept: the surroundings, and the frames of the previous window.
    kept = len(shot.before)
    everywhere = np.ones((shot.height, shot.width), dtype=np.bool_)
    frames, masks = list(shot.before), [~everywhere] * kept
    for i in range(kept, len(shot.frames)):
        where = shot.masks[i] if shot.masks else everywhere
        frames.append(conditioned(shot.frames[i], where, shot.control[i] if shot.control else None))
        masks.append(where)
    return {
        **_sized(shot),
        "video": _pictures(frames),
        "mask": [Image.fromarray(where.astype(np.uint8) * 255) for where in masks],
        "reference_images": shot.references or None,
        "num_frames": shot.length,
    }


def _image_edit(shot: Shot) -> dict[str, Any]:
    return {**_sized(shot), "image": [shown(Image.fromarray(shot.frames[0])), *shot.references]}


STYLES = {
    "WanPipeline": Style("text", _text_to_video),
    "WanVACEPipeline": Style("video", _vace, references=True, conditioned=True),
    "QwenImageEditPlusPipeline": Style("image", _image_edit, references=True, guidance="true_cfg_scale"),
    "Flux2KleinPipeline": Style("image", _image_edit, references=True, negative=None),
}
