"""Loads diffusers pipelines as the model map specifies. Pipelines with the same weights share them in memory."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import diffusers
import torch
import transformers

from .conditions import Conditions
from .diffusion import PRECISIONS, DiffusersPipeline, translated
from .model_map import PipelineRow
from .pipeline import LOADING, WeightsError
from .prompts import Prompts

# The large parts of a pipeline, except the text encoder.
_LARGE = ("transformer", "vae")


class Loader:
    """Loads pipelines to a device. Only one thread may use it."""

    def __init__(self, device: str) -> None:
        self._device = device
        # Large parts that are loaded. A part is released when no pipeline uses it.
        self._parts: WeakValueDictionary[tuple[object, str], torch.nn.Module] = WeakValueDictionary()

    def load(self, row: PipelineRow) -> DiffusersPipeline:
        """Loads the row's pipeline."""
        with LOADING, translated():
            if self._device != "cpu":
                # Make this the thread's default device, for library code that does not name a device. Otherwise such
                # code would use the machine's first GPU, which may belong to another server.
                torch.cuda.set_device(self._device)
            shared = {name: part for name in _LARGE if (part := self._parts.get((row.shared, name))) is not None}
            words = transformers.AutoTokenizer.from_pretrained(str(Path(row.text) / "tokenizer"), local_files_only=True)
            given: dict[str, Any] = shared | {"text_encoder": None, "tokenizer": words}
            if row.storage is None:
                # diffusers reads weights straight to the device, without a copy in the machine's memory. Weights that
                # are compressed when loaded cannot be read this way.
                given["device_map"] = torch.device(self._device).type
            pipe = getattr(diffusers, row.class_name).from_pretrained(
                row.weights,
                dtype=PRECISIONS[row.precision],
                local_files_only=True,
                use_safetensors=True,
                **given,
            )
            _schedule(row, pipe)
            if "transformer" not in shared:
                self._prepare(row, pipe)
            pipe.to(self._device)
            for name in _LARGE:
                self._parts[row.shared, name] = pipe.components[name]
            conditions = Conditions(row, self._device)
            prompts = Prompts(pipe, self._text_encoder(row.text, row), self._device)
        pipe.set_progress_bar_config(disable=True)
        return DiffusersPipeline(row, pipe, conditions, prompts)

    def _prepare(self, row: PipelineRow, pipe: Any) -> None:
        """Merges the row's LoRAs into the transformer's weights, so that they cost neither time nor memory, and
        compresses the weights to 8 bits if the row says so."""
        for number, lora in enumerate(row.loras):
            name = f"lora{number}"
            pipe.load_lora_weights(lora.folder, weight_name=lora.name, adapter_name=name, local_files_only=True)
            if not any(name in adapters for adapters in pipe.get_list_adapters().values()):
                raise WeightsError(f"{lora.file}: none of its layers is one of {row.class_name}")
        if row.loras:
            names = [f"lora{number}" for number in range(len(row.loras))]
            pipe.set_adapters(names)
            pipe.fuse_lora(components=["transformer"], adapter_names=names)
            pipe.unload_lora_weights()
        if row.storage == "fp8":
            pipe.transformer.enable_layerwise_casting(
                storage_dtype=torch.float8_e4m3fn, compute_dtype=PRECISIONS[row.precision]
            )

    def _text_encoder(self, text: str, row: PipelineRow) -> torch.nn.Module:
        key = ((text, row.precision), "text_encoder")
        if (encoder := self._parts.get(key)) is None:
            folder = Path(text) / "text_encoder"
            kind = transformers.AutoConfig.from_pretrained(str(folder), local_files_only=True).architectures[0]
            encoder = getattr(transformers, kind).from_pretrained(
                str(folder), dtype=PRECISIONS[row.precision], local_files_only=True
            )
            self._parts[key] = encoder = encoder.eval()
        return encoder


def _schedule(row: PipelineRow, pipe: Any) -> None:
    kind, options = type(pipe.scheduler), {}
    if row.scheduler is not None:
        kind, options = getattr(diffusers, row.scheduler.class_name), dict(row.scheduler.options)
    if row.shift is not None:
        # Some schedulers call this number flow_shift.
        known = inspect.signature(kind.__init__).parameters
        options["flow_shift" if "flow_shift" in known else "shift"] = row.shift
    if row.scheduler is not None or options:
        pipe.scheduler = kind.from_config(pipe.scheduler.config, **options)
    if row.sigmas:
        _set_levels(pipe.scheduler, row.sigmas)


def _set_levels(scheduler: Any, sigmas: list[float]) -> None:
    """Makes every run use these noise levels, whatever the pipeline requests."""
    known = scheduler.set_timesteps

    def set_timesteps(_: Any = None, device: Any = None, **__: Any) -> None:
        known(sigmas=list(sigmas), device=device)

    scheduler.set_timesteps = set_timesteps
