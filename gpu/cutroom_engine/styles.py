"""Defines how to call each class of pipeline.

This module knows the arguments of the classes, but does not import their libraries.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from PIL import Image

from .controls import Mask, conditioned, to_image
from .frames import Frame, shown
from .motion import Person, face, region, skeleton


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
    # The person in each frame, for classes that need it.
    people: list[Person | None] = field(default_factory=list)
    # For classes that are conditioned on pictures of the clip: the control for each frame (empty if there is none),
    # and the area to repaint in each frame (empty for the whole frame).
    control: list[Frame] = field(default_factory=list)
    masks: list[Mask] = field(default_factory=list)
    # The number of frames per second, or 0 for an image.
    fps: int = 0
    # The name of the LoRA that the request chooses from the row's, or "".
    lora: str = ""


@dataclass(frozen=True)
class Style:
    """How to call a class of pipeline."""

    takes: Literal["video", "text", "image"]
    arguments: Callable[[Shot], dict[str, Any]]
    # Whether the class accepts reference images, and whether it needs one.
    references: bool = False
    needs_reference: bool = False
    # Whether the class uses the person's face and poses.
    people: bool = False
    # Whether a control and a mask determine which parts of the clip are kept.
    conditioned: bool = False
    # Whether the model runs on another server.
    served: bool = False
    # How the class continues the previous window's frames: in its arguments, in the latents of each step, or as the
    # previous segment. None if it cannot.
    continues: Literal["arguments", "latents", "segment"] | None = None
    # When the first-block cache may skip steps: always, or only without guidance, because the pipeline does not
    # tell its two passes apart. None means never: caching would repeat what VACE and Animate add between blocks,
    # and diffusers' cache does not support the last block of the other classes.
    caches: Literal["always", "unguided"] | None = None
    # The names of the arguments for the strength of guidance and for the negative prompt.
    guidance: str = "guidance_scale"
    negative: str | None = "negative_prompt"


def _pictures(frames: list[Frame]) -> list[Image.Image]:
    return [Image.fromarray(frame) for frame in frames]


def _sized(shot: Shot) -> dict[str, Any]:
    return {"prompt": shot.prompt, "width": shot.width, "height": shot.height}


def _text_to_video(shot: Shot) -> dict[str, Any]:
    return {**_sized(shot), "num_frames": shot.length}


def _video_to_video(shot: Shot) -> dict[str, Any]:
    # This pipeline makes as many frames as it receives, so it needs no number of frames.
    return {**_sized(shot), "video": _pictures(shot.frames)}


def _lucy_edit(shot: Shot) -> dict[str, Any]:
    return {**_sized(shot), "video": _pictures(shot.frames), "num_frames": shot.length}


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
        "mask": [to_image(where) for where in masks],
        "reference_images": shot.references or None,
        "num_frames": shot.length,
    }


def segment_before(shot: Shot) -> int:
    """Returns how many of the previous segment's frames WanAnimatePipeline continues. It supports one and five. With
    five, it would split a shot of up to ten frames into two segments."""
    return 5 if len(shot.before) >= 5 and shot.length > 10 else 1


# The side of the face picture in pixels, as the pipeline's motion encoder expects it.
_FACE = 512


def _animate(shot: Shot) -> dict[str, Any]:
    """Replaces the person in the clip with the person in the reference image."""
    size = shot.width, shot.height
    regions = [region(person, *size) for person in shot.people]
    kept = [
        np.where(where[..., None], 0, frame).astype(np.uint8) for where, frame in zip(regions, shot.frames, strict=True)
    ]
    return {
        **_sized(shot),
        "image": shot.references[0],
        "pose_video": _pictures([skeleton(person, *size) for person in shot.people]),
        "face_video": [face(frame, person, _FACE) for frame, person in zip(shot.frames, shot.people, strict=True)],
        "background_video": _pictures(kept),
        "mask_video": [Image.fromarray(np.where(where, 255, 0).astype(np.uint8)).convert("RGB") for where in regions],
        "mode": "replace",
        # Edit the entire shot as one segment.
        "segment_frame_length": shot.length,
        "prev_segment_conditioning_frames": segment_before(shot),
    }


def _image_edit(shot: Shot) -> dict[str, Any]:
    return {**_sized(shot), "image": Image.fromarray(shot.frames[0])}


def _image_edit_by_references(shot: Shot) -> dict[str, Any]:
    return {**_sized(shot), "image": [shown(Image.fromarray(shot.frames[0])), *shot.references]}


def _flux_kontext(shot: Shot) -> dict[str, Any]:
    # By default the pipeline would choose another size.
    return {**_image_edit(shot), "_auto_resize": False, "max_area": shot.width * shot.height}


def _nothing(_: Shot) -> dict[str, Any]:
    return {}


STYLES = {
    "ServedVideo": Style("video", _nothing, references=True, served=True),
    "ServedText": Style("text", _nothing, served=True),
    "ServedImage": Style("image", _nothing, references=True, served=True),
    "WanPipeline": Style("text", _text_to_video, caches="always"),
    "WanVideoToVideoPipeline": Style("video", _video_to_video, continues="latents", caches="unguided"),
    "WanVACEPipeline": Style("video", _vace, references=True, conditioned=True, continues="arguments"),
    "WanAnimatePipeline": Style(
        "video", _animate, references=True, needs_reference=True, people=True, continues="segment"
    ),
    "LucyEditPipeline": Style("video", _lucy_edit, continues="latents", caches="always"),
    "QwenImageEditPipeline": Style("image", _image_edit, guidance="true_cfg_scale", caches="always"),
    "QwenImageEditPlusPipeline": Style(
        "image", _image_edit_by_references, references=True, guidance="true_cfg_scale", caches="always"
    ),
    "FluxKontextPipeline": Style("image", _flux_kontext),
    "Flux2KleinPipeline": Style("image", _image_edit_by_references, references=True, negative=None),
}
