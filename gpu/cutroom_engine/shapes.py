"""The sizes of published models, from which memory and run times are computed.

The numbers of parameters and layers are from the publishers' configurations.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Shape:
    """The parameters of a pipeline's transformer and VAE, and how its transformer divides pictures into tokens."""

    transformer: float
    # The number of blocks, and their width.
    layers: int
    width: int
    vae: float
    # How many values per pixel the VAE keeps in memory while it decodes, by ComfyUI's measurements.
    vae_values: int
    # How many pixels a token covers in each direction, and how many frames (after the first).
    side: int = 16
    frames: int = 4

    def tokens(self, width: int, height: int, length: int) -> int:
        """Returns the number of tokens for this many frames of the size."""
        return -(-width // self.side) * -(-height // self.side) * (1 + (length - 1) // self.frames)

    def operations(self, tokens: int) -> float:
        """Returns the number of floating-point operations for one pass over the tokens: two for each parameter and
        token, plus attention, which grows with the square of the number of tokens."""
        return 2 * self.transformer * tokens + 4 * self.layers * self.width * tokens**2


SHAPES = {
    # VACE adds 15 blocks to the 30 of the 1.3B model, and 8 to the 40 of the 14B model.
    "wan2.1-vace-1.3b": Shape(2.15e9, 45, 1536, 0.127e9, 7000),
    "wan2.1-vace-14b": Shape(17.34e9, 48, 5120, 0.127e9, 7000),
    "wan2.2-5b": Shape(5.0e9, 30, 3072, 0.705e9, 8000, side=32),
    "flux2-klein-4b": Shape(3.88e9, 25, 3072, 0.084e9, 2178),
    "qwen-image": Shape(20.43e9, 60, 3072, 0.127e9, 2200),
}
