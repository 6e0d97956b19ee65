"""Loads pipelines of diffusers as the model map says. Those of the same weights share them
in memory."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import diffusers
import torch
import transformers

from .conditions import Conditions
from .diffusion import DiffusersPipeline, translated
from .loras import Choices, fuse
from .model_map import PipelineRow
from .prompts import Prompts
from .quantized import transformer

_PRECISIONS = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}

# The parts of a pipeline that are large, without the one for text.
_LARGE = ("transformer", "vae", "image_encoder")


class Loader:
    """Loads pipelines on a device. One thread uses it."""

    def __init__(self, folder: Callable[[str], Path], device: str) -> None:
        """folder returns the folder of weights."""
        self._folder = folder
        self._device = device
        # Large parts, as long as a pipeline has them.
        self._parts: WeakValueDictionary[tuple[object, str], torch.nn.Module] = WeakValueDictionary()

    def load(self, row: PipelineRow) -> DiffusersPipeline:
        """Loads the row's pipeline."""
        with translated():
            if self._device != "cpu":
                # Code that names no device should use this one, not the machine's first,
                # which may belong to another server. This holds for this thread only.
                torch.cuda.set_device(self._device)
            shared = self._shared(row)
            given: dict[str, Any] = dict(shared)
            if row.text is not None:
                given |= {"text_encoder": None, "tokenizer": self._tokenizer(row.text.weights)}
            if row.gguf is not None and "transformer" not in shared:
                folder, _, name = row.gguf.rpartition("/")
                given["transformer"] = transformer(
                    self._folder(folder) / name, self._folder(row.weights), _PRECISIONS[row.precision]
                )
            pipe = getattr(diffusers, row.class_name).from_pretrained(
                str(self._folder(row.weights)),
                dtype=_precision(row),
                local_files_only=True,
                use_safetensors=True,
                **given,
            )
            _schedule(row, pipe)
            if "transformer" not in shared:
                fuse(row, pipe, self._folder)
            self._place(row, pipe)
            if row.storage == "fp8" and "transformer" not in shared:
                pipe.transformer.enable_layerwise_casting(
                    storage_dtype=torch.float8_e4m3fn, compute_dtype=_PRECISIONS[row.precision]
                )
            self._keep(row, pipe)
            conditions = Conditions(row, self._folder, self._device)
            prompts = None if row.text is None else Prompts(pipe, self._text_encoder(row), row.text.leaves)
        pipe.set_progress_bar_config(disable=True)
        return DiffusersPipeline(row, pipe, conditions, prompts, self._device, Choices(row, pipe, self._folder))

    def _shared(self, row: PipelineRow) -> dict[str, torch.nn.Module]:
        """Returns the parts of the pipeline that are in memory already. What offload moves
        about belongs to one pipeline."""
        if row.offload != "none":
            return {}
        return {name: part for name in _LARGE if (part := self._parts.get((row.shared, name))) is not None}

    def _keep(self, row: PipelineRow, pipe: Any) -> None:
        if row.offload != "none":
            return
        for name in _LARGE:
            if (part := pipe.components.get(name)) is not None:
                self._parts[row.shared, name] = part

    def _text_encoder(self, row: PipelineRow) -> torch.nn.Module:
        assert row.text is not None
        precision = row.parts.get("text_encoder", row.precision)
        key = ((row.text.weights, precision, row.text.leaves), "text_encoder")
        if (encoder := self._parts.get(key)) is None:
            folder = self._folder(row.text.weights) / "text_encoder"
            name = transformers.AutoConfig.from_pretrained(str(folder), local_files_only=True).architectures[0]
            encoder = getattr(transformers, name).from_pretrained(
                str(folder), dtype=_PRECISIONS[precision], local_files_only=True
            )
            encoder = encoder.eval() if row.text.leaves else encoder.eval().to(self._device)
            self._parts[key] = encoder
        return encoder

    def _tokenizer(self, weights: str) -> Any:
        return transformers.AutoTokenizer.from_pretrained(
            str(self._folder(weights) / "tokenizer"), local_files_only=True
        )

    def _place(self, row: PipelineRow, pipe: Any) -> None:
        if row.vae_tiling:
            pipe.vae.enable_tiling()
        if row.offload == "model":
            pipe.enable_model_cpu_offload(device=self._device)
        elif row.offload == "sequential":
            pipe.enable_sequential_cpu_offload(device=self._device)
        else:
            pipe.to(self._device)


def _precision(row: PipelineRow) -> dict[str, torch.dtype]:
    return {"default": _PRECISIONS[row.precision]} | {part: _PRECISIONS[name] for part, name in row.parts.items()}


def _schedule(row: PipelineRow, pipe: Any) -> None:
    kind, options = type(pipe.scheduler), {}
    if row.scheduler is not None:
        kind, options = getattr(diffusers, row.scheduler.class_name), dict(row.scheduler.options)
    if row.shift is not None:
        # Schedulers of other origins know the same number by another name.
        known = inspect.signature(kind.__init__).parameters
        options["flow_shift" if "flow_shift" in known else "shift"] = row.shift
    if row.scheduler is not None or options:
        pipe.scheduler = kind.from_config(pipe.scheduler.config, **options)
