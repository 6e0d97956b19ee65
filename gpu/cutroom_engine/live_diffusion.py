"""Edits live frames with an image-to-image pipeline of diffusers, in a few steps. The encoded prompt and everything
else that does not depend on the frame is computed in advance."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import diffusers
import numpy as np
import torch
from torch.nn import functional

from . import live_wire as wire
from .diffusion import PRECISIONS, translated
from .frames import live_sizes
from .live import Check
from .model_map import LivePipelineRow
from .pipeline import LOADING

# The number of encoded prompts to cache, for all sessions together.
_KEPT = 32

# The sides of pictures are multiples of this.
_MULTIPLE = 8

# Frame sizes to warm up, because clients often send them. On some cards the first frame of any other size takes
# longer.
_WARM = ((640, 360), (360, 640), (640, 480))


def load_live(row: LivePipelineRow, device: str) -> LiveDiffusion:
    """Loads the row's pipeline. folder maps the name of weights to their folder."""
    with LOADING, translated():
        # Omit the safety checker: in live video it would only turn single frames black.
        given: dict[str, Any] = {"safety_checker": None, "feature_extractor": None, "requires_safety_checker": False}
        dtype = PRECISIONS[row.precision]
        if row.vae is not None:
            given["vae"] = diffusers.AutoencoderTiny.from_pretrained(
                row.vae, dtype=dtype, local_files_only=True, use_safetensors=True
            )
        pipe = diffusers.StableDiffusionImg2ImgPipeline.from_pretrained(
            row.weights, dtype=dtype, local_files_only=True, use_safetensors=True, **given
        )
        pipe.set_progress_bar_config(disable=True)
        if device != "cpu":
            # Make this the default device of the thread, for library code that does not name a device.
            torch.cuda.set_device(device)
            pipe.unet.to(memory_format=torch.channels_last)
        pipe.to(device)
        if device != "cpu":
            torch.cuda.synchronize(device)
    return LiveDiffusion(row, pipe, device)


class LiveDiffusion:
    """A pipeline whose weights are in memory. It implements live.LiveModel."""

    def __init__(self, row: LivePipelineRow, pipe: Any, device: str) -> None:
        self._row, self._pipe, self._device = row, pipe, device
        self._dtype = PRECISIONS[row.precision]
        # Live frames have priority over all other work on the device, including runs.
        cuda = device != "cpu"
        self._first = torch.cuda.Stream(device, priority=-1) if cuda else None
        self._beside = torch.cuda.Stream(device) if cuda else None
        self._prompts: OrderedDict[str, tuple[dict[str, Any], str]] = OrderedDict()
        self._check: Check = lambda: None
        # Watch only the parts that edit calls. The prompt encoder runs in another thread.
        for part in (pipe.unet, getattr(pipe.vae, "encoder", None), getattr(pipe.vae, "decoder", None)):
            if isinstance(part, torch.nn.Module):
                part.register_forward_pre_hook(lambda *_: self._check())

    def warm(self, check: Check) -> None:
        prompt, _ = self.encode("")
        for width, height in _WARM:
            luma, chroma = wire.planes_of(width, height)
            grey = wire.Picture(0, width, height, False, bytes([128]) * (luma + 2 * chroma))
            for _ in range(2):
                self.edit(grey, prompt, 0, check)

    def encode(self, prompt: str) -> tuple[dict[str, Any], str]:
        if prompt not in self._prompts:
            with self._on(self._beside):
                self._prompts[prompt] = self._encoded(prompt), self._too_long(prompt)
            while len(self._prompts) > _KEPT:
                self._prompts.popitem(last=False)
        self._prompts.move_to_end(prompt)
        return self._prompts[prompt]

    def edit(self, picture: wire.Picture, prompt: dict[str, Any], seed: int, check: Check) -> wire.Picture:
        row = self._row
        works, result = live_sizes(picture.width, picture.height, _MULTIPLE, row.pixels)
        self._check = check
        check()
        with self._on(self._first):
            arguments: dict[str, Any] = {
                "image": self._colors(picture, works),
                "strength": row.strength,
                "num_inference_steps": row.steps,
                "guidance_scale": 0.0,
                # Use the same noise for every frame, so that parts of the picture that do not move do not flicker.
                "generator": torch.Generator("cpu").manual_seed(seed),
                "output_type": "pt",
                **prompt,
            }
            if self._first is not None:
                # Tell PyTorch that this stream uses these tensors of another stream, so that their memory is not
                # reused too early.
                for tensor in prompt.values():
                    tensor.record_stream(self._first)
            made = self._pipe(**arguments).images
            check()
            planes = self._planes(made, result, picture.narrow)
        return wire.Picture(picture.number, *result, picture.narrow, planes)

    @contextmanager
    def _on(self, stream: Any) -> Iterator[None]:
        """Runs the block's computation on a separate stream, and waits for the result."""
        with translated(), torch.no_grad():
            if stream is None:
                yield
                return
            torch.cuda.set_device(self._device)
            with torch.cuda.stream(stream):
                yield
                stream.synchronize()

    def _encoded(self, prompt: str) -> dict[str, Any]:
        made = self._pipe.encode_prompt(
            prompt=prompt, device=self._device, num_images_per_prompt=1, do_classifier_free_guidance=False
        )
        return {"prompt_embeds": made[0]}

    def _too_long(self, prompt: str) -> str:
        tokenizer = self._pipe.tokenizer
        if len(tokenizer(prompt, truncation=False, verbose=False).input_ids) <= tokenizer.model_max_length:
            return ""
        return f"The engine reads the first {tokenizer.model_max_length} tokens of the prompt, and it has more."

    def _colors(self, picture: wire.Picture, size: tuple[int, int]) -> torch.Tensor:
        """Converts the picture to red, green and blue from 0 to 1, at the given size."""
        width, height = picture.width, picture.height
        raw = torch.from_numpy(np.frombuffer(picture.planes, dtype=np.uint8).copy()).to(self._device).float()
        luma, _ = wire.planes_of(width, height)
        y = raw[:luma].view(1, 1, height, width)
        c = raw[luma:].view(1, 2, (height + 1) // 2, (width + 1) // 2) - 128
        c = c.repeat_interleave(2, 2).repeat_interleave(2, 3)[:, :, :height, :width]
        y, c = ((y - 16) / 219, c / 224) if picture.narrow else (y / 255, c / 255)
        cb, cr = c[:, :1], c[:, 1:]
        rgb = torch.cat((y + 1.402 * cr, y - 0.344136 * cb - 0.714136 * cr, y + 1.772 * cb), 1)
        return _resized(rgb, size).clamp(0, 1).to(self._dtype)

    def _planes(self, made: torch.Tensor, size: tuple[int, int], narrow: bool) -> bytes:
        """Converts red, green and blue to planes of Y, Cb and Cr, at the given size."""
        rgb = _resized(torch.nan_to_num(made.float()).clamp(0, 1), size)
        r, g, b = rgb[:, :1], rgb[:, 1:2], rgb[:, 2:]
        y = 0.299 * r + 0.587 * g + 0.114 * b
        c = torch.cat(((b - y) / 1.772, (r - y) / 1.402), 1)
        c = functional.avg_pool2d(c, 2, ceil_mode=True, count_include_pad=False)
        y, c = (y * 219 + 16, c * 224 + 128) if narrow else (y * 255, c * 255 + 128)
        whole = torch.cat((y.flatten(), c.flatten())).add(0.5).clamp(0, 255).to(torch.uint8)
        planes: bytes = whole.cpu().numpy().tobytes()
        return planes


def _resized(picture: torch.Tensor, size: tuple[int, int]) -> torch.Tensor:
    width, height = size
    if picture.shape[-2:] == (height, width):
        return picture
    return functional.interpolate(picture, size=(height, width), mode="bilinear", antialias=True, align_corners=False)
