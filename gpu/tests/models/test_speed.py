"""Tests that faster pipelines give the same results as plain ones, within a tolerance."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from diffusers.models.attention_dispatch import AttentionBackendName, _AttentionBackendRegistry

from cutroom_engine.diffusion import DiffusersPipeline
from cutroom_engine.frames import Frame
from cutroom_engine.loading import Loader
from cutroom_engine.model_map import PipelineRow
from cutroom_engine.protocol import RunCancelled
from cutroom_engine.styles import STYLES

from .test_diffusion import nothing, pipeline, same, shot, small_conditions  # noqa: F401  # a fixture
from .tiny import MAKERS, make, make_poses

# The classes that can skip blocks, with the fields of their rows and the number of passes in a step.
CACHED: list[tuple[str, dict[str, Any], int]] = [
    ("WanPipeline", {"guidance": 5.0, "cache": 0.1}, 2),
    ("LucyEditPipeline", {"guidance": 5.0, "cache": 0.1}, 2),
    ("WanVideoToVideoPipeline", {"guidance": 1.0, "cache": 0.1, "call": {"strength": 1.0}}, 1),
    ("QwenImageEditPipeline", {"guidance": 4.0, "cache": 0.3, "negative": "summer"}, 2),
    ("QwenImageEditPlusPipeline", {"guidance": 4.0, "cache": 0.3, "negative": "summer"}, 2),
]


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("weights")
    for name in MAKERS:
        make(name, folder)
    make_poses(folder)
    return folder


def apart(some: list[Frame], others: list[Frame]) -> float:
    """Returns the mean difference between two lists of pictures, from 0 to 255."""
    return max(float(np.abs(a.astype(int) - b).mean()) for a, b in zip(some, others, strict=True))


def run(model: DiffusersPipeline, name: str, **changes: Any) -> list[Frame]:
    return model.run(shot(name, **changes), nothing, nothing)


@pytest.mark.parametrize("name", ["WanPipeline", "WanVACEPipeline"])
@pytest.mark.parametrize("attention", ["math", "flash"])
def test_attention_kernels_give_the_same_result(weights: Path, name: str, attention: str) -> None:
    plain, model = pipeline(weights, name), pipeline(weights, name, attention=attention)
    used = {getattr(part, "_attention_backend", None) for part in model._pipe.transformer.attn_processors.values()}
    assert used == {AttentionBackendName(f"_native_{attention}")}
    assert apart(run(plain, name), run(model, name)) < 1


@pytest.mark.parametrize(("attention", "reason"), [("cudnn", "kernel"), ("sage", "missing package")])
def test_kernel_that_fails_on_this_device_is_not_used(
    weights: Path, caplog: pytest.LogCaptureFixture, attention: str, reason: str
) -> None:
    with caplog.at_level(logging.WARNING, "cutroom_engine"):
        model = pipeline(weights, "WanPipeline", attention=attention)
    (said,) = (record for record in caplog.records if record.name.startswith("cutroom_engine"))
    assert said.__dict__["attention"] == attention
    assert reason in said.__dict__["reason"]
    assert same(run(model, "WanPipeline"), run(pipeline(weights, "WanPipeline"), "WanPipeline"))


def test_kernel_with_wrong_results_is_not_used(weights: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(query: Any, key: Any, value: Any, **_: Any) -> Any:
        return 2 * value

    monkeypatch.setitem(_AttentionBackendRegistry._backends, AttentionBackendName._NATIVE_MATH, wrong)
    model = pipeline(weights, "WanPipeline", attention="math")
    assert same(run(model, "WanPipeline"), run(pipeline(weights, "WanPipeline"), "WanPipeline"))


def test_kernel_applies_only_to_its_row(weights: Path) -> None:
    before = pipeline(weights, "WanPipeline")
    pipeline(weights, "WanVACEPipeline", attention="math")
    after = pipeline(weights, "WanPipeline")
    for model in (before, after):
        used = {getattr(part, "_attention_backend", None) for part in model._pipe.transformer.attn_processors.values()}
        assert used == {None}
    assert _AttentionBackendRegistry.get_active_backend()[0] == AttentionBackendName.NATIVE


def passes(model: DiffusersPipeline) -> tuple[list[None], Callable[[], None]]:
    """Counts how often the feed-forward layer of the last block is called."""
    calls: list[None] = []
    blocks = next(part for part in model._pipe.transformer.children() if isinstance(part, torch.nn.ModuleList))
    layer = next(part for name, part in blocks[-1].named_children() if name in ("ffn", "img_mlp"))
    return calls, layer.register_forward_pre_hook(lambda *_: calls.append(None)).remove


@pytest.mark.parametrize(("name", "fields", "passes_of_step"), CACHED)
def test_steps_that_change_little_are_skipped(
    weights: Path, name: str, fields: dict[str, Any], passes_of_step: int
) -> None:
    fields = {"steps": 12, **fields}
    plain = run(pipeline(weights, name, **fields | {"cache": None}), name)
    never = pipeline(weights, name, **fields | {"cache": 1e-9})
    assert same(plain, run(never, name)), "a cache that is never used changes the result"
    model = pipeline(weights, name, **fields)
    calls, stop = passes(model)
    made = run(model, name)
    stop()
    assert 0 < len(calls) < 12 * passes_of_step
    assert apart(plain, made) < 8
    assert same(made, run(model, name)), "the previous run left something in the cache"

    def cancel(share: float) -> None:
        if share > 0.5:
            raise RunCancelled

    with pytest.raises(RunCancelled):
        model.run(shot(name, seed=9), cancel, nothing)
    assert same(made, run(model, name)), "a cancelled run left something in the cache"


def test_every_class_with_a_cache_is_tested() -> None:
    assert {name for name, _, _ in CACHED} == {name for name, style in STYLES.items() if style.caches is not None}


@pytest.mark.parametrize("name", MAKERS)
def test_every_class_can_be_compiled(weights: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled graphs are not optimized here, so no compiler is needed."""
    compiled: list[str] = []
    known = torch.nn.Module.compile

    def traced(module: torch.nn.Module, *arguments: Any, **options: Any) -> None:
        compiled.append(type(module).__name__)
        known(module, *arguments, backend="eager", **options)

    monkeypatch.setattr(torch.nn.Module, "compile", traced)
    plain, model = pipeline(weights, name), pipeline(weights, name, compile=True)
    assert len(compiled) >= len(model._pipe.transformer._repeated_blocks)
    assert apart(run(plain, name), run(model, name)) < 1
    if name == "WanVACEPipeline":  # a clip with another length is compiled separately
        assert apart(run(plain, name, length=5), run(model, name, length=5)) < 1


def test_compiled_blocks_give_the_same_result(weights: Path) -> None:
    name = "WanVACEPipeline"  # the class with two kinds of blocks
    plain, model = pipeline(weights, name), pipeline(weights, name, compile=True)
    assert apart(run(plain, name), run(model, name)) < 1


def test_all_options_work_together(weights: Path) -> None:
    """Compiled blocks, weights in FP8 and skipped blocks can be combined."""
    name, fields = "WanPipeline", {"steps": 4, "guidance": 1.0}
    plain = run(pipeline(weights, name, **fields), name)
    model = pipeline(weights, name, storage="fp8", cache=0.01, compile=True, attention="math", **fields)
    made = run(model, name)
    assert apart(plain, made) < 8
    assert same(made, run(model, name))


def test_fp8_weights_give_about_the_same_result(weights: Path) -> None:
    full = pipeline(weights, "WanPipeline", guidance=1.0)
    half = pipeline(weights, "WanPipeline", guidance=1.0, quantize="fp8-weights")
    layer = half._pipe.transformer.blocks[0].attn1.to_q.weight
    assert type(layer).__name__ == "Float8Tensor"
    assert not [name for name, part in half._pipe.transformer.named_parameters() if _is_fp8(part, "blocks." in name)]
    assert apart(run(full, "WanPipeline"), run(half, "WanPipeline")) < 8


def _is_fp8(part: torch.Tensor, block: bool) -> bool:
    return type(part.data).__name__ == "Float8Tensor" and not block


def test_fp8_products_are_used_only_if_supported(weights: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "cutroom_engine"):
        model = pipeline(weights, "WanPipeline", quantize="fp8")
    assert "does not multiply in FP8" in caplog.text
    assert len(run(model, "WanPipeline")) == 9


def test_weights_go_straight_to_the_device(weights: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights that are compressed when loaded, or offloaded, are the exceptions."""
    loader = Loader(Path, "cuda:1")
    for changes, straight in (
        ({}, {"device_map": "cuda"}),
        ({"storage": "fp8"}, {}),
        ({"quantize": "fp8-weights"}, {}),
        ({"offload": "model"}, {}),
    ):
        row = {"class": "WanPipeline", "weights": str(weights / "WanPipeline"), "steps": 2} | changes
        assert loader._straight(PipelineRow.model_validate(row)) == straight
