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
# How many more vectors a step cache keeps for each pass of a step: the first block's output, the change in it, and
# the change made by all other blocks.
_CACHED = 3

# A VAE processes four frames at a time, in this many tensors with 96 channels per pixel.
_VAE_FRAMES, _VAE_CHANNELS, _VAE_TENSORS = 4, 96, 5

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


def footprint(name: str, row: PipelineRow) -> Footprint | None:
    """Returns how much memory the row's pipeline needs: the row's own figure, or one computed from its shape. Returns
    None if neither is known, or if some parts are not always on the device."""
    if row.server is not None:
        return Footprint({}, 0)
    if row.memory is not None:
        return Footprint({("pipeline", name): row.memory}, 0)
    if row.shape is None or row.offload != "none":
        return None
    shape = SHAPES[row.shape]
    transformer = shape.transformer * _stored(row)
    text = int(shape.text * _bytes(row, "text_encoder"))
    parts: dict[Hashable, int] = {
        ("transformer", row.shared): int(transformer),
        ("vae", row.shared): int(shape.vae * _bytes(row, "vae")),
        ("other", row.shared): int(shape.other * _bytes(row, "image_encoder")),
    }
    if row.text is None:
        parts["text", name] = text
    elif not row.text.leaves:
        parts["text", row.text.weights, _bytes(row, "text_encoder")] = text
    beside = [row.poses, row.control and row.control.model, row.mask and row.mask.model]
    parts["beside", name] = _BESIDE * sum(one is not None for one in beside)
    leaves = text if row.text is not None and row.text.leaves else 0
    return Footprint(parts, max(_denoising(row), _in_vae(row), leaves))


def together(footprints: Iterable[Footprint]) -> int:
    """Returns how much memory several loaded pipelines need together, in bytes."""
    parts: dict[Hashable, int] = {}
    working = 0
    for one in footprints:
        parts |= one.parts
        working = max(working, one.working)
    return sum(parts.values()) + working


# The number of bits per weight in GGUF formats, including each weight's share of its block's scale.
_GGUF_BITS = {
    "Q2_K": 2.63,
    "Q3_K": 3.44,
    "Q4_0": 4.5,
    "Q4_1": 5.0,
    "Q4_K": 4.5,
    "Q5_0": 5.5,
    "Q5_1": 6.0,
    "Q5_K": 5.5,
    "Q6_K": 6.57,
    "Q8_0": 8.5,
}


def _stored(row: PipelineRow) -> float:
    """Returns the number of bytes per weight of the transformer. A GGUF file's name contains its format; unknown
    formats count as 16 bits."""
    if row.storage is not None or row.quantize is not None:
        return 1
    if row.gguf is None:
        return _bytes(row, "transformer")
    name = row.gguf.rpartition("/")[2].upper()
    return next((bits for known, bits in _GGUF_BITS.items() if known in name), 16) / 8


def _bytes(row: PipelineRow, part: str) -> int:
    return _BYTES[row.parts.get(part, row.precision)]


def _denoising(row: PipelineRow) -> int:
    shape = SHAPES[row.shape or ""]
    # The new picture, the edited picture and a reference each add their tokens.
    frames = 1 if row.takes == "image" else row.window.frames
    tokens = (row.pixels or _PIXELS) / shape.side**2 * ((frames - 1) // shape.frames + (3 if frames == 1 else 2))
    passes = 1 if row.guidance is not None and row.guidance <= 1 else 2
    vectors = _VECTORS + (0 if row.cache is None else _CACHED * passes)
    return int(tokens * shape.width * _bytes(row, "transformer") * vectors)


def _in_vae(row: PipelineRow) -> int:
    frames = 1 if row.takes == "image" else _VAE_FRAMES
    return (row.pixels or _PIXELS) * frames * _VAE_CHANNELS * _bytes(row, "vae") * _VAE_TENSORS
