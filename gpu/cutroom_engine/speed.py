"""Options that make a transformer faster or smaller than published: another attention kernel, skipped blocks,
compiled blocks, and matrix products in FP8. The row of the model map selects them."""

from __future__ import annotations

import logging
from typing import Any

import diffusers
import torch
from diffusers.models.attention_dispatch import AttentionBackendName, attention_backend, dispatch_attention_fn

from .model_map import PipelineRow

_logger = logging.getLogger(__name__)

# diffusers' names for the model map's kernel names.
_BACKENDS = {
    "cudnn": AttentionBackendName._NATIVE_CUDNN,
    "flash": AttentionBackendName._NATIVE_FLASH,
    "efficient": AttentionBackendName._NATIVE_EFFICIENT,
    "math": AttentionBackendName._NATIVE_MATH,
    "flash3": AttentionBackendName._FLASH_3,
    "sage": AttentionBackendName.SAGE,
}
_NATIVE = AttentionBackendName.NATIVE

PRECISIONS = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}

# The largest accepted difference between a kernel and PyTorch's own, as a fraction of the largest value. 8-bit
# rounding causes less, and a wrong kernel far more.
_TOLERANCE = 0.1

# The size with which a kernel is tested. The number of tokens is not a multiple of 128, because cuDNN before 9.15 has
# kernels that were wrong for such lengths.
_TOKENS, _HEADS = 300, 2

# For FP8, cuBLAS needs matrices whose sides are multiples of this.
_FP8_SIDE = 16


def set_attention(row: PipelineRow, transformer: Any, device: str) -> None:
    """Makes the transformer use the row's attention kernel if it works on the device. Otherwise PyTorch chooses: on
    Hopper, cuDNN's kernel."""
    name = row.attention
    if name is not None and (reason := _unusable(name, row, transformer, device)) is not None:
        _logger.warning(
            "cannot use the attention kernel; using PyTorch's choice",
            extra={"attention": name, "reason": reason},
        )
        return
    if name is not None:
        # diffusers also remembers this kernel for all later models that name none. The context resets that.
        with attention_backend(_NATIVE):
            transformer.set_attention_backend(_BACKENDS[name].value)


def _unusable(name: str, row: PipelineRow, transformer: Any, device: str) -> str | None:
    """Returns the reason why the kernel cannot be used, in one line, or None if it can be used."""
    size = (1, _TOKENS, _HEADS, transformer.config.attention_head_dim)
    precision = PRECISIONS[row.parts.get("transformer", row.precision)]
    drawn = torch.Generator().manual_seed(0)
    query, key, value = (torch.randn(size, generator=drawn).to(device, precision) for _ in range(3))
    try:
        with attention_backend(_BACKENDS[name]), torch.no_grad():
            made = dispatch_attention_fn(query, key, value, backend=_BACKENDS[name])
    except torch.AcceleratorError:
        raise  # after this error, the device does not work anymore
    except Exception as error:
        return (str(error).splitlines() or [type(error).__name__])[0]
    expected = dispatch_attention_fn(query, key, value, backend=_NATIVE)
    far = float((made.float() - expected.float()).abs().max() / expected.float().abs().max())
    return None if far <= _TOLERANCE else f"it is off by {far:.0%}"


def set_cache(row: PipelineRow, transformer: Any) -> None:
    """Makes the transformer skip all blocks after the first in steps in which the first block's output changes by
    less than the row's limit."""
    if row.cache is not None:
        transformer.enable_cache(diffusers.FirstBlockCacheConfig(threshold=row.cache))


def set_compiled(row: PipelineRow, transformer: Any) -> None:
    """Makes the transformer's blocks compile when they are first called. Blocks of the same class are compiled once."""
    if row.compile:
        transformer.compile_repeated_blocks()


def quantize(row: PipelineRow, transformer: Any, device: str) -> None:
    """Converts the weights of the transformer's blocks to FP8 on the device, one layer at a time, so that the device
    never holds all of the unconverted weights."""
    from torchao.quantization import (
        Float8DynamicActivationFloat8WeightConfig,
        Float8WeightOnlyConfig,
        quantize_,
    )

    products = row.quantize == "fp8"
    if products and not _multiplies_fp8(device):
        _logger.warning("the device does not multiply in FP8; only the weights are in FP8", extra={"device": device})
        products = False
    blocks = tuple(f"{name}." for name, part in transformer.named_children() if isinstance(part, torch.nn.ModuleList))

    def chosen(module: torch.nn.Module, name: str) -> bool:
        return (
            isinstance(module, torch.nn.Linear)
            and name.startswith(blocks)
            and (not products or not any(side % _FP8_SIDE for side in module.weight.shape))
        )

    config = Float8DynamicActivationFloat8WeightConfig() if products else Float8WeightOnlyConfig()
    quantize_(transformer, config, filter_fn=chosen, device=torch.device(device))


def _multiplies_fp8(device: str) -> bool:
    """Reports whether the device can multiply in FP8 (Ada, Hopper or later)."""
    return device.startswith("cuda") and torch.cuda.get_device_capability(device) >= (8, 9)
