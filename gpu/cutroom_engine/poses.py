"""Finds the person in each picture, with models from transformers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from PIL import Image

from .exclusive import LOADING
from .frames import Frame
from .motion import Person, person

# The number of pictures to process together.
_BATCH = 8

_CERTAIN = 0.3

# The index of COCO's class "person", and ViTPose+'s numbers of the data sets COCO and COCO-WholeBody.
_PERSON, _COCO, _WHOLE_BODY = 0, 0, 5

# The number of COCO's keypoints. COCO-WholeBody has 133.
_KEYPOINTS = 17


class Poses:
    """A person detector, such as RT-DETR, and a pose estimator, ViTPose. An estimator trained on COCO-WholeBody also
    finds hands."""

    def __init__(self, detector: Path, estimator: Path, device: str) -> None:
        options: dict[str, Any] = {"local_files_only": True}
        self._device = device
        self._look = transformers.AutoImageProcessor.from_pretrained(str(detector), **options)
        self._crop = transformers.AutoImageProcessor.from_pretrained(str(estimator), **options)
        with LOADING:
            self._detector = (
                transformers.AutoModelForObjectDetection.from_pretrained(str(detector), **options).to(device).eval()
            )
            self._estimator = (
                transformers.VitPoseForPoseEstimation.from_pretrained(str(estimator), **options).to(device).eval()
            )

    def people(self, frames: list[Frame], check: Callable[[], None]) -> list[Person | None]:
        """Returns the largest person in each picture. Calls check every few pictures."""
        found: list[Person | None] = []
        for start in range(0, len(frames), _BATCH):
            check()
            pictures = [Image.fromarray(frame) for frame in frames[start : start + _BATCH]]
            boxes = self._boxes(pictures)
            found += [
                None if box is None else self._person(picture, box)
                for picture, box in zip(pictures, boxes, strict=True)
            ]
        return found

    def _boxes(self, pictures: list[Image.Image]) -> list[tuple[float, float, float, float] | None]:
        inputs = self._look(images=pictures, return_tensors="pt").to(self._device)
        with torch.inference_mode():
            output = self._detector(**inputs)
        sizes = [(picture.height, picture.width) for picture in pictures]
        results = self._look.post_process_object_detection(output, threshold=_CERTAIN, target_sizes=sizes)
        return [_largest(result["boxes"][result["labels"] == _PERSON].float().cpu().numpy()) for result in results]

    def _person(self, picture: Image.Image, box: tuple[float, float, float, float]) -> Person:
        left, top, right, bottom = box
        boxes = [[[left, top, max(right - left, 1.0), max(bottom - top, 1.0)]]]
        inputs = self._crop(picture, boxes=boxes, return_tensors="pt").to(self._device)
        if self._estimator.config.backbone_config.num_experts > 1:
            of = _COCO if self._estimator.config.num_labels <= _KEYPOINTS else _WHOLE_BODY
            inputs["dataset_index"] = torch.tensor([of], device=self._device)
        with torch.inference_mode():
            output = self._estimator(**inputs)
        pose = self._crop.post_process_pose_estimation(output, boxes=boxes)[0][0]
        points = torch.cat([pose["keypoints"], pose["scores"].reshape(-1, 1)], dim=1)
        return person(points.float().cpu().numpy(), box)


def _largest(boxes: Any) -> tuple[float, float, float, float] | None:
    if len(boxes) == 0:
        return None
    areas = np.prod(boxes[:, 2:] - boxes[:, :2], axis=1)
    left, top, right, bottom = (float(edge) for edge in boxes[int(np.argmax(areas))])
    return left, top, right, bottom
