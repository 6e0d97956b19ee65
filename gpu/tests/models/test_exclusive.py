"""Tests that several threads can create models, although the libraries cannot create two at the same time."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from cutroom_engine.live_diffusion import load_live
from cutroom_engine.loading import Loader
from cutroom_engine.model_map import LivePipelineRow, PipelineRow
from cutroom_engine.seeing import Depth

from .tiny import fields, live_row, make, make_depth


def test_models_are_created_one_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make("WanPipeline", tmp_path)
    live = LivePipelineRow.model_validate(live_row(tmp_path, pixels=64 * 64))
    depth = make_depth(tmp_path)
    row = PipelineRow.model_validate(fields("WanPipeline", tmp_path))
    made = transformers.PreTrainedModel.from_pretrained.__func__  # type: ignore[attr-defined]
    inside, most, times = 0, 0, 0

    def slowly(kind: Any, *arguments: Any, **options: Any) -> Any:
        nonlocal inside, most, times
        inside, times = inside + 1, times + 1
        most = max(most, inside)
        time.sleep(0.3)
        try:
            return made(kind, *arguments, **options)
        finally:
            inside -= 1

    monkeypatch.setattr(transformers.PreTrainedModel, "from_pretrained", classmethod(slowly))
    makers = [
        lambda: Loader("cpu").load(row),
        lambda: load_live(live, "cpu"),
        lambda: Depth(Path(depth), "cpu"),
    ]
    with ThreadPoolExecutor(len(makers)) as threads:
        for future in [threads.submit(make_it) for make_it in makers]:
            assert future.result() is not None
    assert times >= len(makers)
    assert most == 1
    assert not torch.empty(1).is_meta
