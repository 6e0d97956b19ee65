"""Runs models from transformers that estimate depth and segment pictures into parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from PIL import Image

from .controls import Mask, near_is_light
from .exclusive import LOADING
from .frames import Frame

# The number of pictures to process together.
_BATCH = 4

_OPTIONS: dict[str, Any] = {"local_files_only": True}


class Depth:
    """A depth model, such as Depth Anything V2 or MiDaS (DPT)."""

    def __init__(self, folder: Path, device: str) -> None:
        self._device = device
        self._process = transformers.AutoImageProcessor.from_pretrained(str(folder), **_OPTIONS)
        with LOADING:
            self._model = (
                transformers.AutoModelForDepthEstimation.from_pretrained(str(folder), **_OPTIONS).to(device).eval()
            )

    def pictures(self, frames: list[Frame], check: Callable[[], None]) -> list[Frame]:
        """Returns a depth picture for each frame, in which near things are light. Calls check every few frames."""
        seen: list[Frame] = []
        for batch, sizes in _batches(frames, check):
            inputs = self._process(images=batch, return_tensors="pt").to(self._device)
            with torch.no_grad():
                output = self._model(**inputs)
            found = self._process.post_process_depth_estimation(output, target_sizes=sizes)
            seen += [near_is_light(one["predicted_depth"].float().cpu().numpy()) for one in found]
        return seen


class Parser:
    """A semantic segmentation model, such as a SegFormer for clothes."""

    def __init__(self, folder: Path, labels: Sequence[str], device: str) -> None:
        self._device = device
        self._process = transformers.AutoImageProcessor.from_pretrained(str(folder), **_OPTIONS)
        with LOADING:
            self._model = (
                transformers.AutoModelForSemanticSegmentation.from_pretrained(str(folder), **_OPTIONS).to(device).eval()
            )
        known = {str(name).lower(): int(number) for number, name in self._model.config.id2label.items()}
        missing = [label for label in labels if label.lower() not in known]
        if missing:
            raise ValueError(f"{folder}: there is no label {missing[0]} among {', '.join(known)}")
        self._labels = [known[label.lower()] for label in labels]

    def areas(self, frames: list[Frame], check: Callable[[], None]) -> list[Mask]:
        """Returns the area of the labeled parts in each frame. Calls check every few frames."""
        seen: list[Mask] = []
        for batch, sizes in _batches(frames, check):
            inputs = self._process(images=batch, return_tensors="pt").to(self._device)
            with torch.no_grad():
                output = self._model(**inputs)
            found = self._process.post_process_semantic_segmentation(output, target_sizes=sizes)
            seen += [np.isin(one.cpu().numpy(), self._labels) for one in found]
        return seen


def _batches(
    frames: list[Frame], check: Callable[[], None]
) -> Iterator[tuple[list[Image.Image], list[tuple[int, int]]]]:
    """Yields batches of pictures, with each picture's height and width."""
    for start in range(0, len(frames), _BATCH):
        check()
        batch = frames[start : start + _BATCH]
        yield [Image.fromarray(frame) for frame in batch], [frame.shape[:2] for frame in batch]
