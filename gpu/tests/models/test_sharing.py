"""Tests weights that pipelines share, text encoders that leave the device, and weights stored in half the memory."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path
from typing import Any

import pytest
import torch

from cutroom_engine import prompts
from cutroom_engine.diffusion import DiffusersPipeline
from cutroom_engine.loading import Loader
from cutroom_engine.model_map import PipelineRow
from cutroom_engine.protocol import RunCancelled

from .test_diffusion import nothing, pipeline, same, shot, small_conditions  # noqa: F401  # a fixture
from .test_loras import lora
from .tiny import MAKERS, fields, make, make_parser


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("weights")
    for name in MAKERS:
        make(name, folder)
    make_parser(folder)
    return folder


def row(weights: Path, name: str, **changes: Any) -> PipelineRow:
    return PipelineRow.model_validate(fields(name, weights) | changes)


def home(model: DiffusersPipeline) -> list[int]:
    """Returns the memory addresses of the text encoder's weights."""
    assert model._prompts is not None
    return [part.data_ptr() for part in model._prompts.encoder.parameters()]


@pytest.mark.parametrize("name", ["WanPipeline", "Flux2KleinPipeline", "QwenImageEditPlusPipeline"])
def test_text_encoder_is_on_the_device_only_while_it_encodes(weights: Path, name: str) -> None:
    model = pipeline(weights, name)
    assert model._prompts is not None
    before = home(model)
    encoded: list[bool] = []
    denoised: list[bool] = []

    def lent() -> bool:
        """Reports whether the pipeline has the text encoder, with a copy of its weights on the device."""
        there, moved = model._pipe.text_encoder is not None, home(model)[0] != before[0]
        assert there == moved, "the pipeline does not have the copy on the device"
        return there

    watched = [
        model._prompts.encoder.register_forward_pre_hook(lambda *_: encoded.append(lent())),
        model._pipe.transformer.register_forward_pre_hook(lambda *_: denoised.append(lent())),
    ]
    model.run(shot(name), nothing, nothing)
    for one in watched:
        one.remove()
    assert set(encoded) == {True}
    assert set(denoised) == {False}
    assert home(model) == before

    def stop() -> None:
        if lent():
            raise RunCancelled

    other = shot(name, prompt="a summer morning .")
    with pytest.raises(RunCancelled):
        model.run(other, nothing, stop)
    assert home(model) == before, "a run that ended while encoding left a copy"
    assert not lent()


def test_processor_encodes_if_the_encoder_does_not_fit(weights: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = pipeline(weights, "WanPipeline")
    made = model.run(shot("WanPipeline"), nothing, nothing)
    other = pipeline(weights, "WanPipeline")
    monkeypatch.setattr(prompts, "free_memory", lambda _: 10)
    devices: list[str] = []
    brought = prompts._brought
    monkeypatch.setattr(prompts, "_brought", lambda encoder, to: devices.append(to) or brought(encoder, to))
    assert other._prompts is not None
    other._prompts._device = "meta"  # the encoder must not go there
    monkeypatch.setattr(prompts, "_moved", lambda value, _: value)
    assert same(made, other.run(shot("WanPipeline"), nothing, nothing))
    assert set(devices) == {"cpu"}


def test_rows_with_the_same_weights_share_them(weights: Path) -> None:
    text = str(weights / "WanPipeline")
    loader = Loader("cpu")
    drawn = loader.load(row(weights, "WanVACEPipeline", control={"kind": "line"}, text=text, shift=3.0))
    mask = {"model": str(weights / "parser"), "labels": ["Shirt"]}
    masked = loader.load(row(weights, "WanVACEPipeline", mask=mask, text=text, shift=5.0))
    plain = loader.load(row(weights, "WanPipeline", text=text))
    assert drawn._pipe.transformer is masked._pipe.transformer
    assert drawn._pipe.vae is masked._pipe.vae
    assert drawn._pipe.scheduler.config["flow_shift"] == 3, "an unshared part was changed"
    assert drawn._prompts is not None
    assert plain._prompts is not None
    assert drawn._prompts.encoder is plain._prompts.encoder
    alone = pipeline(weights, "WanVACEPipeline", mask=mask, text=text, shift=5.0)
    name = "WanVACEPipeline"
    assert same(masked.run(shot(name), nothing, nothing), alone.run(shot(name), nothing, nothing))
    left = weakref.ref(drawn._pipe.transformer)
    drawn.close()
    assert left() is not None
    assert same(masked.run(shot(name), nothing, nothing), alone.run(shot(name), nothing, nothing))
    masked.close()
    gc.collect()
    assert left() is None, "it still exists"


def test_different_weights_are_not_shared(weights: Path, tmp_path: Path) -> None:
    loader = Loader("cpu")
    plain = loader.load(row(weights, "WanPipeline"))
    for changes in (
        {"loras": [{"file": lora(tmp_path)}]},
        {"precision": "bf16"},
        {"storage": "fp8"},
    ):
        assert loader.load(row(weights, "WanPipeline", **changes))._pipe.transformer is not plain._pipe.transformer


def test_fp8_storage_gives_about_the_same_result(weights: Path) -> None:
    full = pipeline(weights, "WanPipeline", guidance=1.0)
    half = pipeline(weights, "WanPipeline", guidance=1.0, storage="fp8")
    kinds = {tensor.dtype for tensor in half._pipe.transformer.parameters()}
    assert torch.float8_e4m3fn in kinds
    a, b = (model.run(shot("WanPipeline"), nothing, nothing) for model in (full, half))
    assert max(abs(x.astype(int) - y).mean() for x, y in zip(a, b, strict=True)) < 8
