from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from cutroom_engine.frames import Frame
from cutroom_engine.model_map import ModelMapError, read_model_map
from cutroom_engine.motion import Person, face, person, region, skeleton
from cutroom_engine.styles import STYLES, Shot

WIDTH, HEIGHT = 200, 120


def standing(certainty: float = 0.9) -> Person:
    """Returns a person in the middle of the picture, seen from the front."""
    where = [
        *[(100, 20), (104, 17), (96, 17), (108, 19), (92, 19)],  # nose, eyes, ears
        *[(115, 40), (85, 40), (120, 60), (80, 60), (122, 80), (78, 80)],  # shoulders, elbows, wrists
        *[(110, 75), (90, 75), (110, 95), (90, 95), (110, 115), (90, 115)],  # hips, knees, ankles
    ]
    return Person(np.array([(*point, certainty) for point in where], dtype=np.float32), (75, 8, 125, 119))


def at(picture: Frame | Image.Image, x: int, y: int) -> tuple[int, ...]:
    return tuple(int(value) for value in np.asarray(picture)[y, x])


def test_limbs_are_drawn_in_their_colors() -> None:
    picture = skeleton(standing(), WIDTH, HEIGHT)
    assert picture.shape == (HEIGHT, WIDTH, 3)
    places = {"left arm": (118, 50), "right arm": (83, 50), "left shin": (110, 105)}
    middles = {name: at(picture, *place) for name, place in places.items()}
    assert (0, 0, 0) not in middles.values()
    assert len(set(middles.values())) == 3
    assert at(picture, 100, 30) != (0, 0, 0), "the neck is not joined to the nose"
    assert at(picture, 10, 10) == (0, 0, 0)


def test_colors_match_the_training_of_pipelines() -> None:
    """Pipelines are trained on OpenPose's colors, with limbs darker than keypoints."""
    picture = skeleton(standing(), 4 * WIDTH, 4 * HEIGHT)
    assert at(skeleton(standing(), WIDTH, HEIGHT), 100, 20) == (255, 0, 0), "the nose"
    assert at(skeleton(standing(), WIDTH, HEIGHT), 80, 60) == (255, 255, 0), "the right elbow"
    assert at(skeleton(standing(), WIDTH, HEIGHT), 92, 40) == (153, 0, 0), "the right shoulder's limb"
    assert picture.shape == (4 * HEIGHT, 4 * WIDTH, 3)


def whole(certainty: float = 0.9) -> Person:
    """Returns the same person with COCO-WholeBody's keypoints and an open left hand."""
    points = np.zeros((133, 3), dtype=np.float32)
    points[:17] = standing().points
    for joint in range(21):
        finger, length = divmod(max(joint - 1, 0), 4)
        points[91 + joint] = (150 + 8 * finger, 100 - 6 * (length + 1 if joint else 0), certainty)
    return person(points, standing().box)


def test_hands_are_drawn_if_known() -> None:
    picture = skeleton(whole(), WIDTH, HEIGHT)
    assert at(picture, 182, 76) == (0, 0, 255), "the tip of the little finger"
    assert at(picture, 150, 91) == (255, 77, 0), "the second bone of the thumb"
    assert not skeleton(whole(certainty=0.1), WIDTH, HEIGHT)[:, 140:].any(), "invisible parts must not be drawn"
    body = skeleton(person(whole().points, standing().box), WIDTH, HEIGHT)
    assert (picture[:, :140] == body[:, :140]).all()
    assert not body[:, 140:].any()


def test_neck_is_between_the_shoulders() -> None:
    points = standing().points.copy()
    points[5, 2] = 0.1  # one shoulder is not visible
    picture = skeleton(Person(points, standing().box), WIDTH, HEIGHT)
    assert at(picture, 100, 30) == (0, 0, 0)


@pytest.mark.parametrize("person", [None, standing(certainty=0.1)])
def test_invisible_keypoints_are_not_drawn(person: Person | None) -> None:
    frame = np.full((HEIGHT, WIDTH, 3), 200, dtype=np.uint8)
    assert not skeleton(person, WIDTH, HEIGHT).any()
    assert not np.asarray(face(frame, person, 32)).any()


def test_face_is_cut_out() -> None:
    frame = np.zeros((HEIGHT, WIDTH, 3), dtype=np.uint8)
    frame[10:28, 88:112] = (250, 200, 150)
    cut = np.asarray(face(frame, standing(), 32))
    assert cut.shape == (32, 32, 3)
    assert tuple(cut[16, 16]) == (250, 200, 150)
    assert (cut.sum(axis=2) > 0).mean() > 0.3


def test_region_is_not_much_larger_than_the_person() -> None:
    where = region(standing(), WIDTH, HEIGHT)
    assert where[8:119, 75:125].all()
    assert not where[:, :60].any()
    assert not where[:, 145:].any()
    assert not region(None, WIDTH, HEIGHT).any()


def test_person_may_be_at_the_edge_of_the_picture() -> None:
    person = Person(standing().points + np.array([80, 30, 0], dtype=np.float32), (155, 40, 230, 180))
    assert region(person, WIDTH, HEIGHT)[-1, -1]
    assert not region(Person(standing().points, (-90, -90, -50, -50)), WIDTH, HEIGHT).any()
    frame = np.zeros((HEIGHT, WIDTH, 3), dtype=np.uint8)
    assert face(frame, person, 16).size == (16, 16)


def test_pipeline_receives_kept_and_repainted_areas() -> None:
    frames = [np.full((HEIGHT, WIDTH, 3), 99, dtype=np.uint8)] * 5
    reference = Image.new("RGB", (40, 80))
    people = [standing()] * 4 + [None]
    fields: dict[str, Any] = {"frames": frames, "references": [reference], "people": people}
    shot = Shot(prompt="", seed=1, width=WIDTH, height=HEIGHT, length=5, **fields)
    given = STYLES["WanAnimatePipeline"].arguments(shot)
    assert (given["image"], given["mode"], given["segment_frame_length"]) == (reference, "replace", 5)
    assert {len(given[name]) for name in ("pose_video", "face_video", "background_video", "mask_video")} == {5}
    assert at(given["mask_video"][0], 100, 60) == (255, 255, 255)
    assert at(given["background_video"][0], 100, 60) == (0, 0, 0)
    assert at(given["mask_video"][0], 5, 5) == (0, 0, 0)
    assert at(given["background_video"][0], 5, 5) == (99, 99, 99)
    assert at(given["mask_video"][4], 100, 60) == (0, 0, 0), "areas without a person must be kept"


@pytest.mark.parametrize(
    ("pipeline", "says"),
    [
        ("{class: WanAnimatePipeline, weights: /w, steps: 2}", "WanAnimatePipeline needs pose models"),
        (
            "{class: WanPipeline, weights: /w, steps: 2, poses: {detector: /d, estimator: /e}}",
            "WanPipeline takes no pose models",
        ),
    ],
)
def test_pose_models_are_required_only_where_they_are_used(tmp_path: Path, pipeline: str, says: str) -> None:
    path = tmp_path / "models.yaml"
    path.write_text(f"pipelines:\n  a: {pipeline}\nmodels: {{}}\n")
    with pytest.raises(ModelMapError, match=says):
        read_model_map(path, "gen")


def test_all_weights_include_pose_models(tmp_path: Path) -> None:
    path = tmp_path / "models.yaml"
    row = "{class: WanAnimatePipeline, weights: s3://m/a, steps: 2, poses: {detector: s3://m/d, estimator: /e}}"
    path.write_text(f"pipelines:\n  a: {row}\nmodels: {{}}\n")
    assert read_model_map(path, "gen").pipelines["a"].all_weights == ["s3://m/a", "s3://m/d", "/e"]
