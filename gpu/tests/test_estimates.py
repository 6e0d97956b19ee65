from __future__ import annotations

import pytest

from cutroom_engine.estimates import Estimates
from cutroom_engine.model_map import PipelineRow
from cutroom_engine.protocol import RunRequest

from .conftest import Ask

H100 = 400.0


def row(**changes: object) -> PipelineRow:
    fields = {"class": "WanVACEPipeline", "weights": "/vace", "text": "/t", "control": {"kind": "line"}}
    return PipelineRow.model_validate(fields | {"shape": "wan2.1-vace-14b", "steps": 30, "fps": 16} | changes)


def estimates(teraflops: float | None = H100, **changes: object) -> Estimates:
    return Estimates({"vace": row(**changes)}, teraflops)


@pytest.fixture
def clip_of(ask: Ask, tmp_path: object) -> object:
    def make(seconds: float, **changes: object) -> RunRequest:
        fields = {
            "width": 1280,
            "height": 720,
            "fps": 20,
            "duration": seconds,
            "data": {"path": "/c", "mime": "video/mp4"},
        }
        return ask(**(fields | changes))

    return make


def test_only_a_few_passes_of_a_large_model_fit_into_ten_minutes(clip_of: Ask) -> None:
    slow = estimates().seconds("vace", clip_of(5))
    quick = estimates(steps=6, guidance=1.0).seconds("vace", clip_of(5))
    assert slow is not None
    assert quick is not None
    assert 900 < slow < 1800
    assert 90 < quick < 240


def test_longer_and_larger_clips_take_longer(clip_of: Ask) -> None:
    known = estimates(steps=6, guidance=1.0)
    five, ten, small = (
        known.seconds("vace", request) or 0 for request in (clip_of(5), clip_of(10), clip_of(5, width=832, height=480))
    )
    assert 1.8 < ten / five < 2.6
    assert small < five / 3


def test_slow_run_is_rejected_with_the_longest_length(clip_of: Ask) -> None:
    known = estimates(steps=6, guidance=1.0)
    assert not known.too_long("vace", clip_of(5, remaining=597))
    minutes = clip_of(300, remaining=597)
    assert known.too_long("vace", minutes)
    longest = known.longest("vace", minutes)
    assert 10 < longest < 60
    assert not known.too_long("vace", clip_of(longest, remaining=597))
    assert known.too_long("vace", clip_of(longest + 1, remaining=597))
    assert not known.too_long("vace", clip_of(300)), "without a deadline nothing is rejected"


def test_estimates_are_corrected_by_measurements(clip_of: Ask) -> None:
    known = estimates()
    before = known.seconds("vace", clip_of(5)) or 0
    known.ended("vace", clip_of(5), 2 * before)
    assert known.seconds("vace", clip_of(5)) == pytest.approx(2 * before)
    for _ in range(30):
        known.ended("vace", clip_of(5), before / 2)
    assert known.seconds("vace", clip_of(5)) == pytest.approx(before / 2, rel=0.01)
    assert known.seconds("vace", clip_of(10)) == pytest.approx(
        (estimates().seconds("vace", clip_of(10)) or 0) / 2, rel=0.01
    )


def test_unknown_card_uses_only_measurements(clip_of: Ask) -> None:
    known = estimates(None)
    assert known.seconds("vace", clip_of(5)) is None
    assert not known.too_long("vace", clip_of(300, remaining=10))
    known.ended("vace", clip_of(5), 100)
    assert known.seconds("vace", clip_of(5)) == pytest.approx(100)
    assert known.too_long("vace", clip_of(300, remaining=597))
