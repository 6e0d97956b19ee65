"""Computes how much device memory a pipeline needs: for weights, the number of parameters in the published
configuration times the bytes per parameter, plus the working memory of a run."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

from .model_map import PipelineRow
from .shapes import SHAPES

_BYTES = {"bf16": 2, "fp16": 2, "fp32": 4}

# The number of pixels in the catalog's largest picture. A row without a limit works at that size.
_PIXELS = 1280 * 720

# How many vectors as wide as the transformer are in memory for each token: the residual, the queries, keys and
# values, the attention's output, and the inner layer of a block, which is four times as wide.
_VECTORS = 12

# A VAE that works in tiles processes squares with this side, in pixels.
_TILE = 256

# The memory for the models that analyze the clip (27 to 90 million parameters), including their working memory.
_BESIDE = 256 * 2**20


@dataclass(frozen=True)
class Footprint:
    """How much memory a pipeline needs, in bytes."""

    # The size of each part that stays loaded, by its key. Pipelines share parts with equal keys.
    parts: dict[Hashable, int]
    # The working memory of a run. Only one run is active at a time.
    working: int

    @property
    def alone(self) -> int:
        """The memory needed if no other pipeline is loaded."""
        return sum(self.parts.values()) + self.working


def footprint(row: PipelineRow) -> Footprint:
    """Returns how much memory the row's pipeline needs, computed from its shape."""
    shape, size = SHAPES[row.shape], _BYTES[row.precision]
    parts: dict[Hashable, int] = {
        ("transformer", row.shared): int(shape.transformer * (1 if row.storage else size)),
        ("vae", row.shared): int(shape.vae * size),
    }
    models = [of.model for of in (row.control, row.mask) if of is not None and of.model is not None]
    parts |= {("beside", model): _BESIDE for model in models}
    # The VAE's result is in memory while it works in tiles. It works on whole pictures only if memory is free.
    result = 3 * (row.pixels or _PIXELS) * _frames(row) * size
    return Footprint(parts, max(_denoising(row), vae_memory(row, _TILE**2) + result))


def vae_memory(row: PipelineRow, pixels: int) -> int:
    """Returns how many bytes the VAE needs to decode pictures with this many pixels."""
    return SHAPES[row.shape].vae_values * pixels * _BYTES[row.precision]


def together(footprints: Iterable[Footprint]) -> int:
    """Returns how much memory several loaded pipelines need together, in bytes."""
    parts: dict[Hashable, int] = {}
    working = 0
    for one in footprints:
        parts |= one.parts
        working = max(working, one.working)
    return sum(parts.values()) + working


def _frames(row: PipelineRow) -> int:
    return 1 if row.takes == "image" else row.window.frames


def _denoising(row: PipelineRow) -> int:
    shape, frames = SHAPES[row.shape], _frames(row)
    # The new picture, the edited picture and a reference each add their tokens.
    tokens = (row.pixels or _PIXELS) / shape.side**2 * ((frames - 1) // shape.frames + (3 if frames == 1 else 2))
    return int(tokens * shape.width * _BYTES[row.precision] * _VECTORS)
