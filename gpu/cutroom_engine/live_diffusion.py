"""Edits live frames with diffusers' image-to-image pipelines, in a few steps. Everything that does not depend on the
frame, such as the encoded prompt, is computed in advance."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import diffusers
import numpy as np
import torch
import transformers
from PIL import Image
from torch.nn import functional

from . import live_wire as wire
from .diffusion import release_memory, translated
from .exclusive import LOADING
from .frames import live_sizes
from .live import Check
from .loras import fuse
from .model_map import LivePipelineRow
from .speed import PRECISIONS

# The number of encoded prompts to cache, for all sessions together.
_KEPT = 32

# The guidance strength that the authors of latent consistency models recommend.
_CONSISTENCY = 8.0

# Frame sizes to warm up, because clients often send them. On some cards the first frame of any other size takes
# longer.
_WARM = ((640, 360), (360, 640), (640, 480))


def load_live(row: LivePipelineRow, folder: Callable[[str], Path], device: str) -> LiveDiffusion:
    """Loads the row's pipeline. folder maps the name of weights to their folder."""
    with LOADING, translated():
        given: dict[str, Any] = {}
        dtype = PRECISIONS[row.precision]
        if row.class_name != "StableDiffusionXLImg2ImgPipeline":
            # Omit the safety checker: in live video it would only turn single frames black.
            given |= {"safety_checker": None, "feature_extractor": None, "requires_safety_checker": False}
        if row.vae is not None:
            given["vae"] = diffusers.AutoencoderTiny.from_pretrained(
                str(folder(row.vae)), dtype=dtype, local_files_only=True, use_safetensors=True
            )
        pipe = getattr(diffusers, row.class_name).from_pretrained(
            str(folder(row.weights)), dtype=dtype, local_files_only=True, use_safetensors=True, **given
        )
        if row.scheduler is not None:
            kind = getattr(diffusers, row.scheduler.class_name)
            pipe.scheduler = kind.from_config(pipe.scheduler.config, **row.scheduler.options)
        fuse(row, pipe, folder, "unet")
        if row.image is not None:
            pipe.register_modules(
                image_encoder=transformers.CLIPVisionModelWithProjection.from_pretrained(
                    str(folder(row.image.encoder)), dtype=dtype, local_files_only=True
                )
            )
            pipe.load_ip_adapter(
                str(folder(row.image.folder)),
                subfolder="",
                weight_name=row.image.name,
                image_encoder_folder=None,
                local_files_only=True,
            )
            side = pipe.image_encoder.config.image_size
            pipe.register_modules(
                feature_extractor=transformers.CLIPImageProcessor(size={"shortest_edge": side}, crop_size=side)
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
        self.takes_images = row.image is not None
        self._row, self._pipe, self._device = row, pipe, device
        self._dtype = PRECISIONS[row.precision]
        # Live frames have priority over all other work on the device, including runs.
        cuda = device != "cpu"
        self._first = torch.cuda.Stream(device, priority=-1) if cuda else None
        self._beside = torch.cuda.Stream(device) if cuda else None
        self._prompts: OrderedDict[str, tuple[dict[str, Any], str]] = OrderedDict()
        self._shown: bool | None = None
        self._check: Check = lambda: None
        # Watch only the parts that edit calls. The encoders for prompts and images run in another thread.
        for part in (pipe.unet, getattr(pipe.vae, "encoder", None), getattr(pipe.vae, "decoder", None)):
            if isinstance(part, torch.nn.Module):
                part.register_forward_pre_hook(lambda *_: self._check())
        self._nothing_seen = self._unseen()

    def warm(self, check: Check) -> None:
        prompt, _ = self.encode("")
        for width, height in _WARM:
            luma, chroma = wire.planes_of(width, height)
            grey = wire.Picture(0, width, height, False, bytes([128]) * (luma + 2 * chroma))
            for _ in range(2):
                self.edit(grey, prompt, None, 0, check)

    def encode(self, prompt: str) -> tuple[dict[str, Any], str]:
        if prompt not in self._prompts:
            with self._on(self._beside):
                self._prompts[prompt] = self._encoded(prompt), self._too_long(prompt)
            while len(self._prompts) > _KEPT:
                self._prompts.popitem(last=False)
        self._prompts.move_to_end(prompt)
        return self._prompts[prompt]

    def see(self, image: wire.Image) -> list[Any]:
        picture = Image.frombytes("RGBA", (image.width, image.height), bytes(image.pixels))
        ground = Image.new("RGBA", picture.size, "white")
        with self._on(self._beside):
            seen: list[Any] = self._pipe.prepare_ip_adapter_image_embeds(
                ip_adapter_image=Image.alpha_composite(ground, picture).convert("RGB"),
                ip_adapter_image_embeds=None,
                device=self._device,
                num_images_per_prompt=1,
                do_classifier_free_guidance=False,
            )
            return seen

    def edit(
        self, picture: wire.Picture, prompt: dict[str, Any], image: list[Any] | None, seed: int, check: Check
    ) -> wire.Picture:
        row = self._row
        works, result = live_sizes(picture.width, picture.height, row.multiple, row.pixels)
        self._check = check
        check()
        with self._on(self._first):
            self._show(image is not None)
            arguments: dict[str, Any] = {
                "image": self._colors(picture, works),
                "strength": row.strength,
                "num_inference_steps": row.steps,
                "guidance_scale": self._guidance(),
                # Use the same noise for every frame, so that parts of the picture that do not move do not flicker.
                "generator": torch.Generator("cpu").manual_seed(seed),
                "output_type": "pt",
                **prompt,
            }
            if self.takes_images:
                arguments["ip_adapter_image_embeds"] = self._nothing_seen if image is None else image
            self._used(prompt.values(), image or ())
            made = self._pipe(**arguments).images
            check()
            planes = self._planes(made, result, picture.narrow)
        return wire.Picture(picture.number, *result, picture.narrow, planes)

    def close(self) -> None:
        self._pipe = None
        with translated():
            release_memory()

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
        if self._row.class_name == "StableDiffusionXLImg2ImgPipeline":
            return {"prompt_embeds": made[0], "pooled_prompt_embeds": made[2]}
        return {"prompt_embeds": made[0]}

    def _too_long(self, prompt: str) -> str:
        tokenizer = self._pipe.tokenizer
        if len(tokenizer(prompt, truncation=False, verbose=False).input_ids) <= tokenizer.model_max_length:
            return ""
        return f"The engine reads the first {tokenizer.model_max_length} tokens of the prompt, and it has more."

    def _guidance(self) -> float:
        if self._row.guidance is not None:
            return self._row.guidance
        return _CONSISTENCY if self._row.class_name == "LatentConsistencyModelImg2ImgPipeline" else 0.0

    def _unseen(self) -> list[Any] | None:
        """Returns an input without effect, for sessions that have no reference image."""
        if self._row.image is None:
            return None
        projections = self._pipe.unet.encoder_hid_proj.image_projection_layers
        width = self._pipe.image_encoder.config.projection_dim
        return [torch.zeros(1, 1, width, device=self._device, dtype=self._dtype) for _ in projections]

    def _show(self, shown: bool) -> None:
        if self._row.image is not None and shown != self._shown:
            self._pipe.set_ip_adapter_scale(self._row.image.scale if shown else 0.0)
            self._shown = shown

    def _used(self, *of: Any) -> None:
        """Tells PyTorch that the main stream uses these tensors of another stream, so that their memory is not reused
        too early."""
        if self._first is None:
            return
        for tensor in (one for some in of for one in some):
            tensor.record_stream(self._first)

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
