"""Tests the transition between windows with the real classes and tiny random weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from cutroom_engine.diffusion import DiffusersPipeline
from cutroom_engine.frames import Frame
from cutroom_engine.windows import Window, edit_in_windows

from .test_diffusion import noise, nothing, pipeline, same, shot
from .tiny import make

VACE = "WanVACEPipeline"


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("weights")
    make(VACE, folder)
    return folder


def apart(a: list[Frame], b: list[Frame]) -> float:
    return float(np.mean([np.abs(x.astype(int) - y).mean() for x, y in zip(a, b, strict=True)]))


@pytest.mark.parametrize("length", [5, 9])
def test_window_follows_previous_frames(weights: Path, length: int) -> None:
    name = VACE
    model = pipeline(weights, name)
    before = [255 - frame for frame in noise(3)]
    plain = model.run(shot(name, length=length), nothing, nothing)
    other = model.run(shot(name, length=length, before=before), nothing, nothing)
    assert len(other) == length
    assert not same(plain, other)
    assert same(plain, model.run(shot(name, length=length), nothing, nothing)), "a window left something behind"


class PlainVae(torch.nn.Module):
    """A VAE that keeps only the mean color of each block of 8 x 8 pixels, in every fourth frame. Its output resembles
    its input, which would not be so with random weights."""

    def __init__(self, vae: Any) -> None:
        super().__init__()
        self.config, self.dtype, self.device = vae.config, torch.float32, torch.device("cpu")
        self._mean, self._deviation = (
            torch.tensor(values).view(1, -1, 1, 1, 1) for values in (vae.config.latents_mean, vae.config.latents_std)
        )

    def encode(self, video: torch.Tensor) -> Any:
        small = torch.nn.functional.avg_pool3d(video[:, :, ::4], (1, 8, 8))
        spread = torch.cat([small, torch.zeros_like(small[:, :1]).expand(-1, 13, -1, -1, -1)], dim=1)
        latents = spread * self._deviation + self._mean
        return SimpleNamespace(latent_dist=SimpleNamespace(mode=lambda: latents, sample=lambda _=None: latents))

    def decode(self, latents: torch.Tensor, return_dict: bool = True) -> Any:
        small = ((latents - self._mean) / self._deviation)[:, :3]
        small = torch.cat([small[:, :, :1], small[:, :, 1:].repeat_interleave(4, dim=2)], dim=2)
        return (small.repeat_interleave(8, dim=3).repeat_interleave(8, dim=4),)


def keeps(model: DiffusersPipeline) -> Callable[[int], None]:
    """Replaces the transformer with a perfectly trained one: it keeps the previous window's frames, and makes up the
    rest from a number. The returned function sets the number."""
    ideas = [0]

    def idea(like: torch.Tensor) -> torch.Tensor:
        return torch.randn(like.shape, generator=torch.Generator().manual_seed(ideas[-1]))

    def forward(hidden_states: torch.Tensor, timestep: torch.Tensor, **arguments: Any) -> tuple[torch.Tensor]:
        latents = hidden_states[:, :16]
        # The kept picture, the repainted picture, and the mask.
        known, anew = arguments["control_hidden_states"][:, :16], arguments["control_hidden_states"][:, 32:]
        where = anew.mean(dim=1, keepdim=True) < 0.5
        made = torch.where(where, known, idea(latents))
        return ((latents - made) / (timestep.float().reshape(-1, 1, 1, 1, 1) / 1000),)

    model._pipe.transformer.forward = forward
    return ideas.append


def seam(model: DiffusersPipeline, name: str, length: int, continues: bool, begin: Callable[[int], None]) -> float:
    """Edits a clip in two windows that share five frames. Returns how much the two versions of these frames differ,
    compared with the largest difference between consecutive frames. Each window has its own seed, so that without a
    connection the model would make two different clips."""
    made: list[list[Frame]] = []

    def edit(number: int, frames: list[Frame], before: list[Frame]) -> list[Frame]:
        begin(number)
        one = shot(name, seed=number, length=length, frames=frames, before=before if continues else [])
        made.append(model.run(replace(one, references=one.references[:1]), nothing, nothing))
        return list(made[-1])

    total = 2 * length - 5
    whole = list(edit_in_windows(iter(noise(1) * total), total, Window(length, 5, 4), edit))
    assert len(whole) == total
    around = max(apart([a], [b]) for window in made for a, b in pairwise(window))
    return apart(made[0][-5:], made[1][:5]) / around


def test_identity_model_leaves_no_seam(weights: Path) -> None:
    """VACE receives the previous window's frames as a condition, as in its training."""
    name = "WanVACEPipeline"
    model = pipeline(weights, name)
    model._pipe.vae = PlainVae(model._pipe.vae)
    begin = keeps(model)
    assert seam(model, name, 13, True, begin) < 0.1
    assert seam(model, name, 13, False, begin) > 0.5
