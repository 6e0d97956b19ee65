"""Weights that pipelines share, text encoders that leave the device, and half the memory."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path
from typing import Any

import pytest
import torch

from cutroom_engine.loading import Loader
from cutroom_engine.model_map import PipelineRow

from .test_diffusion import nothing, pipeline, same, shot
from .test_loras import lora
from .tiny import make, make_poses


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("weights")
    for name in ("WanPipeline", "WanVACEPipeline", "WanAnimatePipeline", "Flux2KleinPipeline", "LucyEditPipeline"):
        make(name, folder)
    make_poses(folder)
    return folder


def row(weights: Path, name: str, **changes: Any) -> PipelineRow:
    fields = {"class": name, "weights": str(weights / name), "steps": 2, "precision": "fp32"}
    return PipelineRow.model_validate(fields | changes)


@pytest.mark.parametrize(
    "name", ["WanPipeline", "WanVACEPipeline", "WanAnimatePipeline", "LucyEditPipeline", "Flux2KleinPipeline"]
)
@pytest.mark.parametrize("leaves", [True, False])
def test_a_text_encoder_apart_gives_what_its_own_gives(weights: Path, name: str, leaves: bool) -> None:
    of = "Flux2KleinPipeline" if name == "Flux2KleinPipeline" else "WanPipeline"
    more: dict[str, Any] = {} if name == "Flux2KleinPipeline" else {"guidance": 5.0, "negative": "a summer morning"}
    own = pipeline(weights, name, **more)
    apart = pipeline(weights, name, text={"weights": str(weights / of), "leaves": leaves}, **more)
    made = own.run(shot(name), nothing, nothing)
    assert same(made, apart.run(shot(name), nothing, nothing))
    assert same(made, apart.run(shot(name), nothing, nothing)), "a prompt that is remembered is another"
    other = shot(name, prompt="a summer morning .")
    assert same(own.run(other, nothing, nothing), apart.run(other, nothing, nothing))


def test_an_encoder_that_leaves_is_where_it_was(weights: Path) -> None:
    model = pipeline(weights, "WanPipeline", text={"weights": str(weights / "WanPipeline"), "leaves": True})
    assert model._prompts is not None
    before = [tensor.data_ptr() for tensor in model._prompts._encoder.parameters()]
    model.run(shot("WanPipeline"), nothing, nothing)
    assert [tensor.data_ptr() for tensor in model._prompts._encoder.parameters()] == before
    assert model._pipe.text_encoder is None


def test_rows_of_the_same_weights_share_them(weights: Path) -> None:
    text = {"weights": str(weights / "WanPipeline"), "leaves": True}
    loader = Loader(Path, "cpu")
    drawn = loader.load(row(weights, "WanVACEPipeline", control={"kind": "line"}, text=text, shift=3.0))
    masked = loader.load(row(weights, "WanVACEPipeline", mask={"of": "box"}, text=text, shift=5.0))
    plain = loader.load(row(weights, "WanPipeline", text=text))
    assert drawn._pipe.transformer is masked._pipe.transformer
    assert drawn._pipe.vae is masked._pipe.vae
    assert drawn._pipe.scheduler.config["flow_shift"] == 3, "what is not shared was changed"
    assert drawn._prompts is not None
    assert plain._prompts is not None
    assert drawn._prompts._encoder is plain._prompts._encoder
    alone = pipeline(weights, "WanVACEPipeline", mask={"of": "box"}, shift=5.0)
    name = "WanVACEPipeline"
    assert same(masked.run(shot(name), nothing, nothing), alone.run(shot(name), nothing, nothing))
    left = weakref.ref(drawn._pipe.transformer)
    drawn.close()
    assert left() is not None
    assert same(masked.run(shot(name), nothing, nothing), alone.run(shot(name), nothing, nothing))
    masked.close()
    gc.collect()
    assert left() is None, "nobody has it any more"


def test_what_differs_is_not_shared(weights: Path, tmp_path: Path) -> None:
    loader = Loader(Path, "cpu")
    plain = loader.load(row(weights, "WanPipeline"))
    for changes in (
        {"loras": [{"file": lora(tmp_path)}]},
        {"precision": "bf16"},
        {"storage": "fp8"},
    ):
        assert loader.load(row(weights, "WanPipeline", **changes))._pipe.transformer is not plain._pipe.transformer


def test_half_the_memory_gives_about_the_same(weights: Path) -> None:
    full = pipeline(weights, "WanPipeline", guidance=1.0)
    half = pipeline(weights, "WanPipeline", guidance=1.0, storage="fp8")
    kinds = {tensor.dtype for tensor in half._pipe.transformer.parameters()}
    assert torch.float8_e4m3fn in kinds
    a, b = (model.run(shot("WanPipeline"), nothing, nothing) for model in (full, half))
    assert max(abs(x.astype(int) - y).mean() for x, y in zip(a, b, strict=True)) < 8
