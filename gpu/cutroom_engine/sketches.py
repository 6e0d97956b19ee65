"""Draws previews from latents, without running the VAE."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from .frames import Frame
from .model_map import PipelineRow
from .previews import Draw, Previews
from .styles import Shot

_logger = logging.getLogger(__name__)

# The training pictures: their number, their side in latents, the number of pixels per leaf, and the radii of the
# smallest and the largest leaf.
_PICTURES, _LATENTS, _SPARSE, _SMALLEST, _LARGEST = 4, 32, 44, 4, 64

# How colorful leaves are: the standard deviation of each color component from gray.
_COLOUR = 45

# The regularization of the fit. It reduces the weights of channels that say little about colors.
_RIDGE = 0.01


class Sketcher:
    """Draws pictures from a pipeline's latents.

    Each pixel is a weighted sum of the channels of one latent. The weights are fitted to generated pictures that the
    pipeline's own VAE encodes, so the program needs no table of weights for each model.
    """

    def __init__(self, pipe: Any) -> None:
        """The VAE must be on the device."""
        kind = pipe.scheduler.config.get("prediction_type", "flow_prediction")
        if kind != "flow_prediction":
            raise ValueError(f"unknown prediction type of the scheduler: {kind}")
        self._weights, self._bias = _fitted(pipe.vae, _factor(pipe))
        self._plain = _plain(pipe)

    def begin(self, scheduler: Any, output: torch.Tensor, sample: torch.Tensor, shot: Shot) -> Draw:
        """Returns a function that draws the result as the model expects it after a step of the scheduler. output is
        the model's output for sample. For a clip, it draws a middle frame. Data is copied from the device
        asynchronously."""
        if sample.ndim == 5:
            middle = sample.shape[2] // 2
            output, sample = output[:, :, middle], sample[:, :, middle]
        noise = scheduler.sigmas[scheduler.step_index - 1]
        expected = (sample.float() - noise * output.float()).to("cpu", non_blocking=True)
        arrived = torch.cuda.current_stream(sample.device).record_event() if sample.is_cuda else None

        def draw() -> Frame:
            if arrived is not None:
                arrived.synchronize()
            return self.picture(self._plain(expected, shot)[0])

        return draw

    def picture(self, latents: torch.Tensor) -> Frame:
        """Draws latents that are in the VAE's format: channels x height x width."""
        values = torch.einsum("chw,cd->hwd", latents, self._weights) + self._bias
        rounded = ((torch.nan_to_num(values).clamp(-1, 1) + 1) * 127.5).round()
        picture: Frame = rounded.to(torch.uint8).numpy()
        return picture


def sketcher(row: PipelineRow, pipe: Any, device: str) -> Sketcher | None:
    """Returns the sketcher for a pipeline's previews, or None if the pipeline has no previews. Call it before the
    pipeline is placed on the device."""
    try:
        pipe.vae.to(device)
        return Sketcher(pipe)
    except Exception:
        _logger.warning("there are no previews", extra={"pipeline": row.class_name}, exc_info=True)
        return None
    finally:
        if row.offload != "none":
            pipe.vae.to("cpu")


@contextmanager
def sketched(pipe: Any, by: Sketcher | None, previews: Previews | None, shot: Shot) -> Iterator[None]:
    """Offers a preview after each step of the scheduler."""
    if by is None or previews is None:
        yield
        return
    scheduler = pipe.scheduler
    known, replaced = scheduler.step, "step" in vars(scheduler)

    def step(output: torch.Tensor, time: Any, sample: torch.Tensor, *rest: Any, **more: Any) -> Any:
        made = known(output, time, sample, *rest, **more)
        previews.offer(lambda: by.begin(scheduler, output, sample, shot))
        return made

    scheduler.step = step
    try:
        yield
    finally:
        if replaced:
            scheduler.step = known
        else:
            del scheduler.step


def _plain(pipe: Any) -> Callable[[torch.Tensor, Shot], torch.Tensor]:
    """Returns a function that converts the latents of one frame from the pipeline's format to the VAE's: 1 x channels
    x height x width."""
    vae, config, kind = pipe.vae, pipe.vae.config, type(pipe)
    factor = _factor(pipe)
    patched = hasattr(vae, "bn")
    if patched:
        norm = vae.bn
        scale = torch.sqrt(norm.running_var.float() + config.batch_norm_eps).cpu()
        shift = norm.running_mean.float().cpu()
    elif config.get("latents_mean") is not None:
        scale, shift = torch.tensor(config.latents_std), torch.tensor(config.latents_mean)
    else:
        scale = torch.tensor([1 / config.scaling_factor])
        shift = torch.tensor([config.get("shift_factor") or 0.0])
    scale, shift = scale.view(1, -1, 1, 1), shift.view(1, -1, 1, 1)

    def plain(latents: torch.Tensor, shot: Shot) -> torch.Tensor:
        if patched:
            rows, columns = (side // (2 * factor) for side in (shot.height, shot.width))
            latents = latents.view(1, rows, columns, -1).permute(0, 3, 1, 2)
            return kind._unpatchify_latents(latents * scale + shift)
        if latents.ndim == 3:
            latents = kind._unpack_latents(latents, shot.height, shot.width, factor)
        if latents.ndim == 5:
            latents = latents[:, :, 0]
        return latents * scale + shift

    return plain


def _factor(pipe: Any) -> int:
    """Returns how many pixels a latent covers in each direction."""
    of_clips: int = getattr(pipe, "vae_scale_factor_spatial", 8)
    return getattr(pipe, "vae_scale_factor", of_clips)


def _fitted(vae: Any, factor: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the weights (channels x 3) and the constants of a least-squares fit."""
    clips = "temperal_downsample" in vae.config
    made, wanted = [], []
    for picture in _leaves(_LATENTS * factor):
        pixels = (torch.from_numpy(picture).permute(2, 0, 1).unsqueeze(0).float() / 127.5) - 1
        taken = pixels.unsqueeze(2) if clips else pixels
        with torch.no_grad():
            latents = vae.encode(taken.to(vae.device, vae.dtype)).latent_dist.mode().float().cpu()
        latents = latents[:, :, 0] if clips else latents
        small = torch.nn.functional.interpolate(pixels, latents.shape[-2:], mode="area")
        made.append(latents[0].flatten(1).T.double())
        wanted.append(small[0].flatten(1).T.double())
    x, y = torch.cat(made), torch.cat(wanted)
    x_mean, y_mean = x.mean(0), y.mean(0)
    x, y = x - x_mean, y - y_mean
    squares = x.T @ x
    ridge = torch.diag(squares.diagonal() * _RIDGE + 1e-9)
    weights = torch.linalg.solve(squares + ridge, x.T @ y)
    return weights.float(), (y_mean - x_mean @ weights).float()


def _leaves(side: int) -> Iterator[NDArray[np.uint8]]:
    """Yields pictures of fallen leaves: overlapping discs of many sizes and colors. Their statistics resemble those
    of photographs."""
    drawn = np.random.default_rng(0)
    for _ in range(_PICTURES):
        picture = Image.new("RGB", (side, side))
        pen = ImageDraw.Draw(picture)
        for _ in range(side * side // _SPARSE):
            radius = min(_SMALLEST / np.sqrt(1 - drawn.random()), _LARGEST)
            x, y = drawn.uniform(0, side, 2)
            colour = np.clip(drawn.uniform(0, 255) + drawn.normal(0, _COLOUR, 3), 0, 255)
            red, green, blue = (int(part) for part in colour)
            pen.ellipse((x - radius, y - radius, x + radius, y + radius), fill=(red, green, blue))
        yield np.array(picture, dtype=np.uint8)
