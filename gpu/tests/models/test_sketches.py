"""Tests the previews of pipelines of the real classes, with tiny random weights, on the CPU."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from cutroom_engine import sketches
from cutroom_engine.diffusion import DiffusersPipeline
from cutroom_engine.frames import Frame
from cutroom_engine.previews import Previews
from cutroom_engine.sketches import Sketcher
from cutroom_engine.styles import Shot

from .test_diffusion import nothing, pipeline, same, shot, small_conditions, weights  # noqa: F401  # fixtures
from .tiny import MAKERS

ALWAYS = 1e-9


def previewed(model: DiffusersPipeline, of: Shot) -> tuple[list[Frame], list[bytes]]:
    """Returns a pipeline's result and its previews."""
    sent: list[bytes] = []
    with Previews(ALWAYS, of.width, of.height, sent.append) as previews:
        made = model.run(of, nothing, nothing, previews)
    return made, sent


@pytest.mark.parametrize("name", MAKERS)
def test_previews_do_not_change_the_result(weights: Path, name: str) -> None:  # noqa: F811
    model = pipeline(weights, name)
    made, sent = previewed(model, shot(name))
    assert same(made, model.run(shot(name), nothing, nothing)), "previews change the result"
    assert sent
    for content in sent:
        with Image.open(io.BytesIO(content), formats=["JPEG"]) as picture:
            assert picture.size == (96, 64)
            assert np.asarray(picture).std() > 1, "the preview is blank"
    assert "step" not in vars(model._pipe.scheduler), "the scheduler was changed"


@pytest.mark.parametrize("scheduler", ["FlowMatchLCMScheduler", "FlowMatchEulerDiscreteScheduler"])
@pytest.mark.parametrize("offload", ["none", "model"])
def test_other_schedulers_and_offload_have_previews(
    weights: Path,  # noqa: F811
    scheduler: str,
    offload: str,
) -> None:
    model = pipeline(weights, "WanPipeline", scheduler={"class": scheduler}, offload=offload)
    made, sent = previewed(model, shot("WanPipeline"))
    assert sent
    assert same(made, model.run(shot("WanPipeline"), nothing, nothing))


def test_pipeline_without_previews_still_edits(
    weights: Path,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = pipeline(weights, "WanPipeline")
    made = model.run(shot("WanPipeline"), nothing, nothing)

    def fail(*_: Any) -> None:
        raise RuntimeError("CUDA error")

    monkeypatch.setattr(model._sketcher, "begin", fail)
    again, sent = previewed(model, shot("WanPipeline"))
    assert same(made, again)
    assert not sent
    monkeypatch.setattr(sketches, "_fitted", fail)
    without, sent = previewed(pipeline(weights, "WanPipeline"), shot("WanPipeline"))
    assert same(made, without)
    assert not sent


def test_weights_undo_the_vae() -> None:
    """The VAE of this test mixes the mean colors of blocks of 8 x 8 pixels with channels that mean nothing. The
    fitted weights must undo that."""
    drawn = torch.Generator().manual_seed(0)
    mixed = torch.randn(16, 3, generator=drawn) * (torch.arange(16) % 4 > 0).unsqueeze(1)

    def encode(pixels: torch.Tensor) -> Any:
        small = torch.nn.functional.avg_pool2d(pixels[:, :, 0], 8)
        latents = torch.einsum("cd,bdhw->bchw", mixed, small) + 0.3
        return SimpleNamespace(latent_dist=SimpleNamespace(mode=lambda: latents.unsqueeze(2)))

    config = {"temperal_downsample": [], "latents_mean": [0.0] * 16, "latents_std": [1.0] * 16}
    vae = SimpleNamespace(encode=encode, device="cpu", dtype=torch.float32, config=config)
    vae.config = type("Config", (dict,), {"latents_mean": [0.0] * 16, "latents_std": [1.0] * 16})(config)
    scheduler = SimpleNamespace(config={})
    sketcher = Sketcher(SimpleNamespace(vae=vae, scheduler=scheduler))
    colours = torch.rand(3, 40, 40, generator=drawn)
    latents = encode((colours * 2 - 1)[None, :, None]).latent_dist.mode()[0, :, 0]
    wanted = torch.nn.functional.avg_pool2d(colours, 8).permute(1, 2, 0).numpy() * 255
    assert np.abs(sketcher.picture(latents) - wanted).max() < 4


@pytest.mark.parametrize(
    "name", ["WanPipeline", "QwenImageEditPlusPipeline", "FluxKontextPipeline", "Flux2KleinPipeline"]
)
def test_latents_are_unpacked_for_each_pipeline(weights: Path, name: str) -> None:  # noqa: F811
    """Some pipelines pack and scale latents. The sketcher converts them to the VAE's format."""
    pipe = pipeline(weights, name)._pipe
    factor = getattr(pipe, "vae_scale_factor", 8)
    channels = pipe.vae.config.get("z_dim") or pipe.vae.config.latent_channels
    size = 2 * (64 // (2 * factor)), 2 * (96 // (2 * factor))
    plain = torch.randn(1, channels, *size, generator=torch.Generator().manual_seed(0))
    if name == "Flux2KleinPipeline":
        norm = pipe.vae.bn
        norm.running_mean.copy_(torch.linspace(-1, 1, len(norm.running_mean)))
        norm.running_var.copy_(torch.linspace(1, 2, len(norm.running_var)))
        patches = pipe._patchify_latents(plain)
        deviation = torch.sqrt(norm.running_var + pipe.vae.config.batch_norm_eps).view(1, -1, 1, 1)
        held = pipe._pack_latents((patches - norm.running_mean.view(1, -1, 1, 1)) / deviation)
    elif name == "FluxKontextPipeline":
        config = pipe.vae.config
        held = pipe._pack_latents((plain - config.shift_factor) * config.scaling_factor, 1, channels, *size)
    else:
        mean, deviation = (
            torch.tensor(known).view(1, -1, 1, 1)
            for known in (pipe.vae.config.latents_mean, pipe.vae.config.latents_std)
        )
        held = (plain - mean) / deviation
        if name.startswith("Qwen"):
            held = pipe._pack_latents(held, 1, channels, *size)
    got = sketches._plain(pipe)(held, shot(name))
    assert got.shape == plain.shape
    assert torch.allclose(got, plain, atol=1e-5)
