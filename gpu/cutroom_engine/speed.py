"""Options that make a transformer faster or smaller than published: another attention kernel,
skipped steps, compiled blocks, matrix products in FP8. The row of the model map chooses them."""

from __future__ import annotations

import logging
from typing import Any

import diffusers
import torch
from diffusers.models.attention_dispatch import AttentionBackendName, attention_backend, dispatch_attention_fn

from .model_map import PipelineRow

_logger = logging.getLogger(__name__)

# Maps the model map's names to diffusers' names.
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

# The largest difference between a kernel and PyTorch's own, as a fraction of the largest value:
# more than 8-bit rounding, and far less than a wrong kernel's error.
_TOLERANCE = 0.1

# The size with which a kernel is tested. The length is not a multiple of 128, because kernels in
# cuDNN before 9.15 were wrong for such lengths.
_TOKENS, _HEADS = 300, 2

# cuBLAS multiplies matrices in FP8 whose sides are multiples of this.
_FP8_SIDE = 16


def set_attention(row: PipelineRow, transformer: Any, device: str) -> None:
    """Makes the transformer use the row's attention kernel if it works on the device, and otherwise
    PyTorch's choice, which is cuDNN's kernel on Hopper."""
    name = row.attention
    if name is not None and (reason := _unusable(name, row, transformer, device)) is not None:
        _logger.warning(
            "cannot use the attention kernel; using PyTorch's choice",
            extra={"attention": name, "reason": reason},
        )
        return
    if name is not None:
        # diffusers also remembers the kernel for the whole process, for models that name no kernel.
        with attention_backend(_NATIVE):
            transformer.set_attention_backend(_BACKENDS[name].value)


def _unusable(name: str, row: PipelineRow, transformer: Any, device: str) -> str | None:
    """Returns, in one line, why the kernel cannot be used, or None."""
    size = (1, _TOKENS, _HEADS, transformer.config.attention_head_dim)
    precision = PRECISIONS[row.parts.get("transformer", row.precision)]
    drawn = torch.Generator().manual_seed(0)
    query, key, value = (torch.randn(size, generator=drawn).to(device, precision) for _ in range(3))
    try:
        with attention_backend(_BACKENDS[name]), torch.no_grad():
            made = dispatch_attention_fn(query, key, value, backend=_BACKENDS[name])
    except torch.AcceleratorError:
        raise  # after this error the device no longer works
    except Exception as error:
        return (str(error).splitlines() or [type(error).__name__])[0]
    expected = dispatch_attention_fn(query, key, value, backend=_NATIVE)
    far = float((made.float() - expected.float()).abs().max() / expected.float().abs().max())
    return None if far <= _TOLERANCE else f"it is off by {far:.0%}"


def set_cache(row: PipelineRow, transformer: Any) -> None:
    """Makes the transformer skip its other blocks in steps whose first block changes no more than
    the row allows."""
    if row.cache is not None:
        transformer.enable_cache(diffusers.FirstBlockCacheConfig(threshold=row.cache))


def set_compiled(row: PipelineRow, transformer: Any) -> None:
    """Compiles the transformer's blocks when they are first called, each kind once."""
    if row.compile:
        transformer.compile_repeated_blocks()


def quantize(row: PipelineRow, transformer: Any, device: str) -> None:
    """Turns the weights of the transformer's blocks into FP8, one layer after the other on the
    device, so that the device never holds all of them unquantized."""
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
    """Reports whether the device is Ada, Hopper or later."""
    return device.startswith("cuda") and torch.cuda.get_device_capability(device) >= (8, 9)
