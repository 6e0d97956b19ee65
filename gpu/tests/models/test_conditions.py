"""Tests VACE's conditions with tiny random weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cutroom_engine.controls import GREY
from cutroom_engine.seeing import Parser
from cutroom_engine.styles import STYLES

from .test_diffusion import noise, nothing, pipeline, same, shot
from .tiny import make, make_depth, make_parser

VACE = "WanVACEPipeline"


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("weights")
    make(VACE, folder)
    make_depth(folder)
    make_parser(folder)
    return folder


def keys(weights: Path, name: str) -> dict[str, Any]:
    """Returns the keys in the model map that set this condition."""
    parts = {"mask": {"model": str(weights / "parser"), "labels": ["shirt"]}}
    return {
        "line": {"control": {"kind": "line"}},
        "depth": {"control": {"kind": "depth", "model": str(weights / "depth")}},
        "parts": parts,
        "line in parts": {"control": {"kind": "line"}} | parts,
    }[name]


@pytest.mark.parametrize("name", ["line", "depth", "parts", "line in parts"])
def test_every_condition_is_derived_from_the_clip(weights: Path, name: str) -> None:
    changes = keys(weights, name)
    model = pipeline(weights, VACE, **changes)
    assert model._conditions is not None
    seen = model._conditions.of(shot(VACE), nothing)
    assert len(seen.control) == (9 if "control" in changes else 0)
    assert len(seen.masks) == (9 if "mask" in changes else 0)
    assert {frame.shape for frame in seen.control} <= {(64, 96, 3)}
    assert {where.shape for where in seen.masks} <= {(64, 96)}
    made = model.run(shot(VACE), nothing, nothing)
    assert len(made) == 9
    assert same(made, model.run(shot(VACE), nothing, nothing))


def test_raw_clip_is_never_marked_for_repainting(weights: Path) -> None:
    """According to VACE's authors, it was never trained on unprocessed clips."""
    raw = shot(VACE)
    for name in ("line", "depth", "parts"):
        conditions = pipeline(weights, VACE, **keys(weights, name))._conditions
        assert conditions is not None
        arguments = STYLES[VACE].arguments(conditions.of(raw, nothing))
        for video, mask, frame in zip(arguments["video"], arguments["mask"], raw.frames, strict=True):
            anew = np.asarray(mask) == 255
            assert not np.array_equal(np.asarray(video)[anew], frame[anew]) or not anew.any()
            assert np.array_equal(np.asarray(video)[~anew], frame[~anew])
            if name == "parts":
                assert (np.asarray(video)[anew] == GREY).all()


def test_previous_window_is_kept(weights: Path) -> None:
    before = [np.zeros((64, 96, 3), dtype=np.uint8)] * 3
    conditions = pipeline(weights, VACE)._conditions
    assert conditions is not None
    arguments = STYLES[VACE].arguments(conditions.of(shot(VACE, before=before), nothing))
    masks = [np.asarray(mask) for mask in arguments["mask"]]
    assert [bool(mask.any()) for mask in masks] == [False] * 3 + [True] * 6
    assert not any(np.asarray(picture).any() for picture in arguments["video"][:3])


def test_reference_is_cut_out_onto_white(weights: Path) -> None:
    mask = {"model": str(weights / "parser"), "labels": ["Shirt"], "cutout": ["Skin"]}
    conditions = pipeline(weights, VACE, mask=mask)._conditions
    assert conditions is not None
    (before,) = shot(VACE).references
    (after,) = conditions.of(shot(VACE), nothing).references
    assert conditions._parser is not None
    (skin,) = conditions._parser.areas([np.asarray(before)], ["Skin"], nothing)
    assert 0 < skin.mean() < 1
    assert np.array_equal(np.asarray(after)[skin], np.asarray(before)[skin])
    assert (np.asarray(after)[~skin] == 255).all()


def test_result_depends_on_the_control(weights: Path) -> None:
    drawn = pipeline(weights, VACE, **keys(weights, "line")).run(shot(VACE), nothing, nothing)
    masked = pipeline(weights, VACE, **keys(weights, "parts")).run(shot(VACE), nothing, nothing)
    assert not same(drawn, masked)


def test_labels_must_belong_to_the_model(weights: Path) -> None:
    either = Parser(weights / "parser", ["skin", "Shirt"], "cpu").areas(noise(2), ["skin", "Shirt"], nothing)
    assert all(area.all() for area in either)
    with pytest.raises(ValueError, match="no label hat among skin, shirt"):
        Parser(weights / "parser", ["hat"], "cpu")
