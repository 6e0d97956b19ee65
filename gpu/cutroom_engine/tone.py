"""Converts high dynamic range (HDR) pictures for ordinary displays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .frames import Frame

# The numbers of two HDR transfer functions in ITU-T H.273.
PQ, HLG = 16, 18

# The luminance of white in ordinary pictures, in cd/m2 (ITU-R BT.2408). It corresponds to 1.0 here.
_WHITE = 203.0

# Converts linear light from BT.2020 to BT.709 primaries (ITU-R BT.2087).
_TO_BT709 = np.array(
    [[1.6605, -0.5876, -0.0728], [-0.1246, 1.1329, -0.0083], [-0.0182, -0.1006, 1.1187]], dtype=np.float32
)


def is_hdr(transfer: int) -> bool:
    """Reports whether pictures with this transfer function need tone mapping."""
    return transfer in (PQ, HLG)


def tone_map(picture: NDArray[np.uint16], transfer: int, *, wide: bool) -> Frame:
    """Returns the SDR version of a picture with 16 bits per channel. wide means that its primaries are BT.2020's."""
    light = _linear(picture.astype(np.float32) / 65535.0, transfer)
    if wide:
        light = light @ _TO_BT709.T
    light = np.maximum(light, 0)
    # Compress brightness above a knee toward 1, so that highlights keep their shapes. Scale all channels by the
    # factor for the brightest one, so that hues are kept.
    peak = light.max(axis=2, keepdims=True)
    light *= _bend(peak) / np.maximum(peak, 1e-6)
    encoded = np.where(light < 0.018, 4.5 * light, 1.099 * np.power(light, 0.45) - 0.099)
    return np.asarray(np.clip(encoded, 0, 1) * 255 + 0.5, dtype=np.uint8)


def _linear(signal: NDArray[Any], transfer: int) -> NDArray[Any]:
    if transfer == PQ:  # SMPTE ST 2084
        m1, m2, c1, c2, c3 = 2610 / 16384, 2523 / 32, 3424 / 4096, 2413 / 128, 2392 / 128
        root = np.power(signal, 1 / m2)
        ratio = np.maximum(root - c1, 0) / (c2 - c3 * root)
        return np.asarray(10000 / _WHITE * np.power(ratio, 1 / m1))
    # HLG (ITU-R BT.2100), for a display of 1000 cd/m2, with a system gamma of 1.2.
    a, b, c = 0.17883277, 0.28466892, 0.55991073
    scene = np.where(signal <= 0.5, signal * signal / 3, (np.exp((signal - c) / a) + b) / 12)
    luminance = scene @ np.array([0.2627, 0.6780, 0.0593], dtype=np.float32)
    return np.asarray(1000 / _WHITE * scene * np.power(np.maximum(luminance, 1e-6), 0.2)[..., None])


def _bend(peak: NDArray[Any]) -> NDArray[Any]:
    knee = 0.6
    over = np.maximum(peak - knee, 0)
    room = 1 - knee
    return np.where(peak <= knee, peak, knee + room * over / (over + room))
