"""Wan 2.1 with random weights, without its text encoder."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from typing import Any

import diffusers
import torch
from torch.utils.flop_counter import FlopCounterMode

from cutroom_engine.model_map import PipelineRow

# The configurations of Wan-AI/Wan2.1-T2V-1.3B-Diffusers and -14B-Diffusers, and a configuration
# small enough for a CPU.
SIZES: dict[str, dict[str, Any]] = {
    "1.3b": {"num_attention_heads": 12, "attention_head_dim": 128, "ffn_dim": 8960, "num_layers": 30},
    "14b": {"num_attention_heads": 40, "attention_head_dim": 128, "ffn_dim": 13824, "num_layers": 40},
    "tiny": {"num_attention_heads": 2, "attention_head_dim": 12, "ffn_dim": 32, "num_layers": 2},
}
_TEXT_WIDTH = 4096
_TINY_VAE = {"base_dim": 3, "dim_mult": [1, 1, 1, 1], "num_res_blocks": 1}

# Dense bf16 operations per second, from the manufacturers' data sheets.
_SHEET = {
    "H200": 989e12,
    "H100 80GB HBM3": 989e12,
    "H100 PCIe": 756e12,
    "A100": 312e12,
    "L40S": 362e12,
    "RTX 4090": 165e12,
    "L4": 121e12,
}


class WithoutText(diffusers.WanVideoToVideoPipeline):  # type: ignore[misc]  # diffusers' base class has no types
    """A pipeline that uses random vectors in place of encoded prompts."""

    def encode_prompt(self, *_: Any, device: Any = None, **__: Any) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns random embeddings for the prompt and for the negative prompt."""
        drawn = torch.randn((2, 1, 512, _TEXT_WIDTH), generator=torch.Generator().manual_seed(0))
        drawn = drawn.to(self.transformer.device, self.transformer.dtype)
        return drawn[0], drawn[1]


def build(size: str, device: str) -> WithoutText:
    """Returns the pipeline. Its transformer is in bf16 and its VAE in fp32."""
    torch.manual_seed(0)
    with torch.device(device):
        was = torch.get_default_dtype()
        torch.set_default_dtype(torch.bfloat16)
        try:
            transformer = diffusers.WanTransformer3DModel(
                **SIZES[size], text_dim=_TEXT_WIDTH, qk_norm="rms_norm_across_heads"
            )
        finally:
            torch.set_default_dtype(was)
        vae = diffusers.AutoencoderKLWan(**(_TINY_VAE if size == "tiny" else {}))
    # Loading real weights has the same effect.
    for name, parameter in transformer.named_parameters():
        if set(name.split(".")) & set(transformer._keep_in_fp32_modules):
            parameter.data = parameter.data.float()
    scheduler = diffusers.UniPCMultistepScheduler(
        prediction_type="flow_prediction", use_flow_sigmas=True, flow_shift=5.0
    )
    pipe = WithoutText(
        tokenizer=None, text_encoder=None, transformer=transformer.eval(), vae=vae.eval(), scheduler=scheduler
    )
    pipe.set_progress_bar_config(disable=True)
    return pipe


@dataclass(frozen=True)
class Transformer:
    """The cost of one transformer call. A denoising step with guidance makes two calls."""

    parameters: int
    # The floating-point operations and the seconds of one call.
    operations: float
    seconds: float


def measure_transformer(pipe: WithoutText, row: PipelineRow, width: int, height: int, calls: int = 3) -> Transformer:
    """Measures transformer calls with latents for one window of the row, at the given size."""
    model = pipe.transformer
    frames = (row.window.frames - 1) // 4 + 1
    inputs = {
        "hidden_states": torch.randn((1, 16, frames, height // 8, width // 8), dtype=model.dtype, device=model.device),
        "timestep": torch.tensor([500], device=model.device),
        "encoder_hidden_states": pipe.encode_prompt()[0],
    }
    counter = FlopCounterMode(display=False)
    with torch.inference_mode(), counter:
        model(**inputs)
    with torch.inference_mode():
        seconds = _timed(lambda: model(**inputs), str(model.device), calls)
    return Transformer(sum(p.numel() for p in model.parameters()), counter.get_total_flops(), seconds)


def measured_peak(device: str, side: int) -> float:
    """Returns the bf16 operations per second of a product of two square matrices, as measured."""
    a, b = (torch.randn((side, side), dtype=torch.bfloat16, device=device) for _ in range(2))
    return 2 * side**3 / _timed(lambda: a @ b, device, 20)


def sheet_peak(name: str) -> float | None:
    """Returns the card's bf16 operations per second according to its data sheet, or None if it is unknown."""
    return next((peak for known, peak in _SHEET.items() if re.search(rf"\b{known}\b", name)), None)


def _timed(call: Any, device: str, calls: int) -> float:
    """Returns the seconds of a call. Warm-up calls, which choose and build kernels, are not counted."""
    call()
    _finish(device)
    began = time.perf_counter()
    for _ in range(calls):
        call()
    _finish(device)
    return (time.perf_counter() - began) / calls


def _finish(device: str) -> None:
    if device.startswith("cuda"):
        torch.cuda.synchronize(device)
