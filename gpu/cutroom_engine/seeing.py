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
from .frames import Frame
from .pipeline import LOADING

# The number of pictures to process together.
_BATCH = 4

_OPTIONS: dict[str, Any] = {"local_files_only": True}


class _Seer:
    """A model that analyzes pictures, with its processor."""

    def __init__(self, kind: Any, folder: Path, device: str) -> None:
        self._device = device
        self._process = transformers.AutoImageProcessor.from_pretrained(str(folder), **_OPTIONS)
        with LOADING:
            self._model = kind.from_pretrained(str(folder), **_OPTIONS).to(device).eval()

    def _seen(self, frames: list[Frame], check: Callable[[], None]) -> Iterator[tuple[Any, list[tuple[int, int]]]]:
        """Yields the model's output for each batch, with the height and width of each picture. Calls check before each
        batch."""
        for start in range(0, len(frames), _BATCH):
            check()
            batch = frames[start : start + _BATCH]
            pictures = [Image.fromarray(frame) for frame in batch]
            inputs = self._process(images=pictures, return_tensors="pt").to(self._device)
            with torch.no_grad():
                yield self._model(**inputs), [frame.shape[:2] for frame in batch]


class Depth(_Seer):
    """A depth model, such as Depth Anything V2 or MiDaS (DPT)."""

    def __init__(self, folder: Path, device: str) -> None:
        super().__init__(transformers.AutoModelForDepthEstimation, folder, device)

    def pictures(self, frames: list[Frame], check: Callable[[], None]) -> list[Frame]:
        """Returns a depth picture for each frame, in which near things are light. Calls check every few frames."""
        seen: list[Frame] = []
        for output, sizes in self._seen(frames, check):
            found = self._process.post_process_depth_estimation(output, target_sizes=sizes)
            seen += [near_is_light(one["predicted_depth"].float().cpu().numpy()) for one in found]
        return seen


class Parser(_Seer):
    """A semantic segmentation model, such as a SegFormer for clothes."""

    def __init__(self, folder: Path, labels: Sequence[str], device: str) -> None:
        super().__init__(transformers.AutoModelForSemanticSegmentation, folder, device)
        self._known = {str(name).lower(): int(number) for number, name in self._model.config.id2label.items()}
        missing = [label for label in labels if label.lower() not in self._known]
        if missing:
            raise ValueError(f"{folder}: there is no label {missing[0]} among {', '.join(self._known)}")

    def areas(self, frames: list[Frame], labels: Sequence[str], check: Callable[[], None]) -> list[Mask]:
        """Returns the area of the labeled parts in each frame. Calls check every few frames."""
        seen: list[Mask] = []
        numbers = [self._known[label.lower()] for label in labels]
        for output, sizes in self._seen(frames, check):
            found = self._process.post_process_semantic_segmentation(output, target_sizes=sizes)
            seen += [np.isin(one.cpu().numpy(), numbers) for one in found]
        return seen
