"""Loads diffusers pipelines as the model map specifies. Pipelines with the same weights share them
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
from .exclusive import LOADING
from .loras import Choices, fuse
from .model_map import PipelineRow
from .prompts import Prompts
from .quantized import transformer
from .sketches import sketcher
from .speed import PRECISIONS, quantize, set_attention, set_cache, set_compiled
from .weights import WeightsError

# The large parts of a pipeline, except the text encoder.
_LARGE = ("transformer", "vae", "image_encoder")


class Loader:
    """Loads pipelines to a device. Only one thread may use it."""

    def __init__(self, folder: Callable[[str], Path], device: str) -> None:
        """folder maps the name of weights to their folder."""
        self._folder = folder
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
            shared = self._shared(row)
            given: dict[str, Any] = dict(shared)
            if row.text is not None:
                given |= dict.fromkeys(_parts_of(row, "text_encoder")) | self._tokenizers(row)
            if row.gguf is not None and "transformer" not in shared:
                folder, _, name = row.gguf.rpartition("/")
                given["transformer"] = transformer(
                    self._folder(folder) / name, self._folder(row.weights), PRECISIONS[row.precision]
                )
            pipe = getattr(diffusers, row.class_name).from_pretrained(
                str(self._folder(row.weights)),
                dtype=_precision(row),
                local_files_only=True,
                use_safetensors=True,
                **self._straight(row),
                **given,
            )
            _schedule(row, pipe)
            if "transformer" not in shared:
                fuse(row, pipe, self._folder)
                self._shrink(row, pipe)
            sketches = sketcher(row, pipe, self._device)
            self._place(row, pipe)
            if "transformer" not in shared:
                set_attention(row, pipe.transformer, self._device)
                set_cache(row, pipe.transformer)
                set_compiled(row, pipe.transformer)
            self._keep(row, pipe)
            conditions = Conditions(row, self._folder, self._device)
            prompts = None
            if row.text is not None:
                prompts = Prompts(pipe, self._text_encoders(row), self._device, row.text.leaves)
        pipe.set_progress_bar_config(disable=True)
        return DiffusersPipeline(row, pipe, conditions, prompts, Choices(row, pipe, self._folder), sketches)

    def convert(self, row: PipelineRow, to: Path) -> None:
        """Writes the row's pipeline to the folder as it runs: with the row's precision, its LoRAs
        merged, and its storage format. Shared text encoders are omitted."""
        given: dict[str, Any] = {} if row.text is None else dict.fromkeys(_parts_of(row, "text_encoder"))
        pipe = getattr(diffusers, row.class_name).from_pretrained(
            str(self._folder(row.weights)), dtype=_precision(row), local_files_only=True, use_safetensors=True, **given
        )
        fuse(row, pipe, self._folder)
        if row.storage is not None:
            self._shrink(row, pipe)
        pipe.save_pretrained(str(to), safe_serialization=True)

    def convert_text(self, row: PipelineRow, to: Path) -> None:
        """Writes the row's shared text encoders and their tokenizers to the folder."""
        for name, encoder in self._text_encoders(row).items():
            encoder.save_pretrained(str(to / name), safe_serialization=True)
        for name, tokenizer in self._tokenizers(row).items():
            tokenizer.save_pretrained(str(to / name))

    def _shared(self, row: PipelineRow) -> dict[str, torch.nn.Module]:
        """Returns the parts of the pipeline that are already in memory. With offload, pipelines share no parts."""
        if row.offload != "none":
            return {}
        return {name: part for name in _LARGE if (part := self._parts.get((row.shared, name))) is not None}

    def _keep(self, row: PipelineRow, pipe: Any) -> None:
        if row.offload != "none":
            return
        for name in _LARGE:
            if (part := pipe.components.get(name)) is not None:
                self._parts[row.shared, name] = part

    def _text_encoders(self, row: PipelineRow) -> dict[str, torch.nn.Module]:
        """Returns the row's shared text encoders, by their names in the pipeline."""
        return {name: self._text_encoder(row, name) for name in _parts_of(row, "text_encoder")}

    def _text_encoder(self, row: PipelineRow, name: str) -> torch.nn.Module:
        assert row.text is not None
        precision = row.parts.get(name, row.precision)
        key = ((row.text.weights, precision, row.text.leaves), name)
        if (encoder := self._parts.get(key)) is None:
            folder = self._folder(row.text.weights) / name
            kind = transformers.AutoConfig.from_pretrained(str(folder), local_files_only=True).architectures[0]
            encoder = getattr(transformers, kind).from_pretrained(
                str(folder), dtype=PRECISIONS[precision], local_files_only=True
            )
            encoder = encoder.eval() if row.text.leaves else encoder.eval().to(self._device)
            self._parts[key] = encoder
        return encoder

    def _tokenizers(self, row: PipelineRow) -> dict[str, Any]:
        assert row.text is not None
        folder = self._folder(row.text.weights)
        return {
            name: transformers.AutoTokenizer.from_pretrained(str(folder / name), local_files_only=True)
            for name in _parts_of(row, "tokenizer")
        }

    def _straight(self, row: PipelineRow) -> dict[str, Any]:
        """Returns arguments that make diffusers read weights straight to the device, without a copy in the machine's
        memory. Weights that are compressed when loaded cannot be read this way."""
        if row.offload != "none" or row.storage is not None or row.quantize is not None:
            return {}
        return {"device_map": torch.device(self._device).type}

    def _shrink(self, row: PipelineRow, pipe: Any) -> None:
        """Compresses the transformer's weights to 8 bits if the row says so and the files are not compressed yet."""
        if row.storage == "fp8":
            pipe.transformer.enable_layerwise_casting(
                storage_dtype=torch.float8_e4m3fn, compute_dtype=PRECISIONS[row.precision]
            )
        elif row.quantize is not None and getattr(pipe.transformer, "hf_quantizer", None) is None:
            quantize(row, pipe.transformer, self._device)

    def _place(self, row: PipelineRow, pipe: Any) -> None:
        if row.vae_tiling:
            pipe.vae.enable_tiling()
        if row.offload == "model":
            pipe.enable_model_cpu_offload(device=self._device)
        elif row.offload == "sequential":
            pipe.enable_sequential_cpu_offload(device=self._device)
        else:
            pipe.to(self._device)


def _parts_of(row: PipelineRow, kind: str) -> list[str]:
    """Returns the names of the pipeline's parts of a kind, such as text_encoder and, for some classes,
    text_encoder_2."""
    parts = inspect.signature(getattr(diffusers, row.class_name).__init__).parameters
    return [name for name in parts if name.startswith(kind)]


def _precision(row: PipelineRow) -> dict[str, torch.dtype]:
    return {"default": PRECISIONS[row.precision]} | {part: PRECISIONS[name] for part, name in row.parts.items()}


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
    if "sigmas" not in inspect.signature(known).parameters:
        raise WeightsError(f"sigmas: {type(scheduler).__name__} takes none", retryable=False)

    def set_timesteps(_: Any = None, device: Any = None, **__: Any) -> None:
        known(sigmas=list(sigmas), device=device)

    scheduler.set_timesteps = set_timesteps
