"""Starts a window with the last frames of the previous window, for pipelines that have no input for them."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from .frames import Frame

# The number of frames per latent in Wan pipelines: 1 for the first latent, 4 for each later one.
_FIRST, _REST = 1, 4


class Anchor:
    """Keeps the first latents of a window equal to the previous window's last frames: after every step it replaces
    them, at the step's noise level. Attention carries them over to the rest of the window."""

    def __init__(self, pipe: Any, before: list[Frame], seed: int) -> None:
        self._latents = _encoded(pipe, before)
        drawn = torch.Generator("cpu").manual_seed(seed)
        self._noise = torch.randn(self._latents.shape, generator=drawn).to(self._latents.device)

    def hold(self, pipe: Any, latents: torch.Tensor) -> torch.Tensor:
        """Returns the latents after a step, with the first ones replaced."""
        scheduler = pipe.scheduler
        sigma = float(scheduler.sigmas[scheduler.step_index])
        held = (1 - sigma) * self._latents + sigma * self._noise
        latents = latents.clone()
        latents[:, :, : held.shape[2]] = held.to(latents.device, latents.dtype)
        return latents


def anchored(before: list[Frame]) -> list[Frame]:
    """Returns the first frames, up to a number that fills whole latents."""
    if not before:
        return []
    return before[: _FIRST + (len(before) - _FIRST) // _REST * _REST]


def _encoded(pipe: Any, before: list[Frame]) -> torch.Tensor:
    vae = pipe.vae
    latents = vae.encode(_video(pipe, anchored(before))).latent_dist.mode().float()

    known = (vae.config.latents_mean, vae.config.latents_std)
    mean, deviation = (torch.tensor(values).view(1, -1, 1, 1, 1).to(latents.device) for values in known)
    return (latents - mean) / deviation


def _video(pipe: Any, frames: list[Frame]) -> torch.Tensor:
    """Returns the frames in the VAE's format: 1 x 3 x frames x height x width, -1 to 1."""
    pictures = torch.from_numpy(np.stack(frames)).permute(3, 0, 1, 2).unsqueeze(0)
    return (pictures.to(pipe._execution_device).float() / 127.5 - 1).to(pipe.vae.dtype)
