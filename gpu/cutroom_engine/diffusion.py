"""Pipelines of diffusers. Everything that computes on the device is in here."""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import diffusers
import numpy as np
import torch
import transformers

from .frames import Frame
from .model_map import PipelineRow
from .pipeline import DeviceLost
from .poses import Poses
from .styles import STYLES, Shot

_PRECISIONS = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}

# Said by errors that have no class of their own when memory runs out beside PyTorch's
# allocator: where a kernel is loaded, and where cuBLAS begins.
_OUT_OF_MEMORY = ("error: out of memory", "CUBLAS_STATUS_ALLOC_FAILED")


class DeviceUnusable(Exception):
    """One line that says why nothing can be computed on the device."""


class DiffusersPipeline:
    """A pipeline with its weights in memory, run as the row of the model map says."""

    def __init__(self, row: PipelineRow, pipe: Any, poses: Poses | None = None) -> None:
        self._row = row
        self._poses = poses
        self._style = STYLES[row.class_name]
        self._pipe = pipe

    def run(self, shot: Shot, on_step: Callable[[float], None]) -> list[Frame]:
        """See pipeline.Pipeline."""

        def stepped(pipe: Any, step: int, _time: Any, tensors: dict[str, Any]) -> dict[str, Any]:
            # The number of steps follows from the scheduler and from how much is
            # to be changed.
            total = getattr(pipe, "num_timesteps", None) or self._row.steps
            on_step(min((step + 1) / total, 1.0))
            return tensors

        if self._poses is not None:
            with _translated():
                shot = replace(shot, people=self._poses.people(shot.frames))
        arguments = self._style.arguments(shot) | {
            "num_inference_steps": self._row.steps,
            # Drawn on the processor, so that a seed means the same on every device.
            "generator": torch.Generator("cpu").manual_seed(shot.seed),
            "callback_on_step_end": stepped,
            "output_type": "pt",
            **self._row.call,
        }
        with _translated(), torch.inference_mode():
            try:
                output = self._pipe(**arguments)
            except BaseException:
                # A part that was moved to the device for its turn would stay there,
                # beside those of the next run. Without offload it does nothing.
                self._pipe.maybe_free_model_hooks()
                raise
            made = output.images if self._style.takes == "image" else output.frames[0]
            return [_to_frame(picture) for picture in made]

    def close(self) -> None:
        """Gives its memory back."""
        self._pipe = self._poses = None
        with _translated():
            release_memory()


def load(row: PipelineRow, folder: Callable[[str], Path], device: str) -> DiffusersPipeline:
    """Loads the pipeline of the row. folder gives the one of its weights."""
    kind = getattr(diffusers, row.class_name)
    precision = {"default": _PRECISIONS[row.precision]} | {part: _PRECISIONS[name] for part, name in row.parts.items()}
    with _translated():
        if device != "cpu":
            # What names no device is meant for this one, and not for the machine's
            # first, which may be another server's. It holds for this thread alone.
            torch.cuda.set_device(device)
        pipe = kind.from_pretrained(str(folder(row.weights)), dtype=precision, local_files_only=True, use_safetensors=True)
        if row.scheduler is not None:
            scheduler = getattr(diffusers, row.scheduler.class_name)
            pipe.scheduler = scheduler.from_config(pipe.scheduler.config, **row.scheduler.options)
        if row.vae_tiling:
            pipe.vae.enable_tiling()
        if row.offload == "model":
            pipe.enable_model_cpu_offload(device=device)
        elif row.offload == "sequential":
            pipe.enable_sequential_cpu_offload(device=device)
        else:
            pipe.to(device)
        poses = None
        if row.poses is not None:
            poses = Poses(folder(row.poses.detector), folder(row.poses.estimator), device)
    pipe.set_progress_bar_config(disable=True)
    return DiffusersPipeline(row, pipe, poses)


def hide_progress() -> None:
    """Keeps the libraries' progress bars out of the log."""
    diffusers.utils.logging.disable_progress_bar()
    transformers.utils.logging.disable_progress_bar()


def release_memory() -> None:
    """Gives what is unused back to the device."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def device_memory(device: str) -> int | None:
    """The memory of the device in bytes, None for the processor."""
    if not device.startswith("cuda"):
        return None
    return int(torch.cuda.get_device_properties(device).total_memory)


def memory_in_use(device: str) -> dict[str, int]:
    """Bytes of the device by kind: what it has, what is reserved of it, what tensors
    take, and the most that they took. Nothing for the processor."""
    if not device.startswith("cuda"):
        return {}
    return {
        "total": device_memory(device) or 0,
        "reserved": torch.cuda.memory_reserved(device),
        "allocated": torch.cuda.memory_allocated(device),
        "allocated_peak": torch.cuda.max_memory_allocated(device),
    }


def check_device(device: str) -> None:
    """Raises DeviceUnusable unless something was computed on the device: a driver that
    is missing or too old, or a card that is broken, is told at the start."""
    try:
        torch.ones(1, device=device).sum().item()
    except (RuntimeError, AssertionError) as error:
        said = str(error).splitlines() or [type(error).__name__]
        raise DeviceUnusable(f"{device} cannot be used: {said[0]}") from error


def _to_frame(picture: Any) -> Frame:
    # Rounded on the device, from which a quarter of the bytes has to come then.
    rounded = (torch.nan_to_num(picture.float()).clamp(0, 1) * 255 + 0.5).to(torch.uint8)
    return np.ascontiguousarray(rounded.permute(1, 2, 0).cpu().numpy())


class _translated:
    """Turns the library's errors of the device into those of the package."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if not isinstance(error, RuntimeError):
            return
        if isinstance(error, torch.OutOfMemoryError) or any(said in str(error) for said in _OUT_OF_MEMORY):
            raise MemoryError(str(error)) from error
        if isinstance(error, torch.AcceleratorError) or not _answers():
            raise DeviceLost(str(error)) from error


def _answers() -> bool:
    """Whether the device still computes. Errors of cuBLAS, cuDNN and Triton do not say;
    after one that the device does not recover from, every call fails."""
    if not torch.cuda.is_initialized():
        return True
    try:
        torch.cuda.synchronize()
    except RuntimeError:
        return False
    return True
