"""Runs diffusers pipelines. All code that computes on the device is in this module."""

from __future__ import annotations

import gc
import inspect
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import diffusers
import numpy as np
import torch
import transformers

from .conditions import Conditions
from .footprint import vae_memory
from .frames import Frame
from .model_map import PipelineRow
from .pipeline import DeviceLost
from .prompts import Prompts, free_memory
from .styles import STYLES, Shot

_logger = logging.getLogger(__name__)

PRECISIONS = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}

# Errors outside PyTorch's memory allocator have no exception class. These texts show that loading a
# kernel or starting cuBLAS ran out of memory.
_OUT_OF_MEMORY = ("error: out of memory", "CUBLAS_STATUS_ALLOC_FAILED")


class DeviceUnusable(Exception):
    """The device cannot be used. The message is a single line with the reason."""


class DiffusersPipeline:
    """A pipeline whose weights are in memory. The row of the model map determines how it runs."""

    def __init__(
        self,
        row: PipelineRow,
        pipe: Any,
        conditions: Conditions,
        prompts: Prompts,
    ) -> None:
        self._row, self._pipe = row, pipe
        self._prompts: Prompts | None = prompts
        self._conditions: Conditions | None = conditions
        self._style = STYLES[row.class_name]

    def run(self, shot: Shot, on_step: Callable[[float], None], check: Callable[[], None]) -> list[Frame]:
        def stepped(_: Any, step: int, _time: Any, tensors: dict[str, Any]) -> dict[str, Any]:
            on_step(min((step + 1) / self._row.steps, 1.0))
            return tensors

        if self._conditions is not None and self._style.conditioned:
            with translated():
                shot = self._conditions.of(shot, check)
        arguments = self._style.arguments(shot) | {
            "num_inference_steps": self._row.steps,
            # Draw the noise on the CPU, so that a seed has the same effect on every device.
            "generator": torch.Generator("cpu").manual_seed(shot.seed),
            "callback_on_step_end": stepped,
            "output_type": "pt",
            **self._guided(),
        }
        vae = self._pipe.vae
        with (
            translated(),
            torch.no_grad(),
            _watched(self._models(), check),
            _drawn(self._pipe.scheduler, shot.seed),
            _tiled(vae, vae_memory(self._row, shot.width * shot.height)),
        ):
            output = self._pipe(**arguments)
            made = output.images if self._style.takes == "image" else output.frames[0]
            return [_to_frame(picture) for picture in made]

    def _models(self) -> list[Any]:
        """Returns the models that the pipeline calls, including the shared text encoder."""
        return [*self._pipe.components.values(), *([self._prompts.encoder] if self._prompts else [])]

    def _guided(self) -> dict[str, Any]:
        """Returns the row's guidance settings as arguments of the pipeline."""
        arguments: dict[str, Any] = {}
        if self._row.guidance is not None:
            arguments[self._style.guidance] = self._row.guidance
        if self._row.negative is not None and self._style.negative is not None:
            arguments[self._style.negative] = self._row.negative
        return arguments

    def close(self) -> None:
        self._pipe = self._conditions = self._prompts = None
        with translated():
            release_memory()


@contextmanager
def _drawn(scheduler: Any, seed: int) -> Iterator[None]:
    """Makes a scheduler that adds noise depend on the seed. Pipelines do not pass it a generator."""
    if "generator" not in inspect.signature(scheduler.step).parameters:
        yield
        return
    # Use another seed than for the pipeline. Otherwise the scheduler's noise would repeat the pipeline's first
    # latents.
    scheduler.step = partial(scheduler.step, generator=torch.Generator("cpu").manual_seed((seed + 1) % 2**32))
    try:
        yield
    finally:
        del scheduler.step


@contextmanager
def _tiled(vae: Any, need: int) -> Iterator[None]:
    """Makes the VAE work in tiles if less memory is free than it needs for whole pictures, or if that fails."""

    def careful(whole: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            free = free_memory(vae.device)
            if free is None or free >= need:
                try:
                    with translated():
                        return whole(*arguments, **options)
                except MemoryError:
                    _logger.warning("out of memory; the VAE works in tiles")
            # Try again outside of the exception handler, because its traceback keeps tensors alive.
            release_memory()
            vae.enable_tiling()
            try:
                return whole(*arguments, **options)
            finally:
                vae.disable_tiling()

        return call

    for name in ("encode", "decode"):
        setattr(vae, name, careful(getattr(vae, name)))
    try:
        yield
    finally:
        del vae.encode, vae.decode


@contextmanager
def _watched(models: list[Any], check: Callable[[], None]) -> Iterator[None]:
    """Calls check before each call of one of the pipeline's models, so that a run can be ended there and shows that
    it is alive. Transformers are called once or twice in a step, a VAE once every few frames."""
    models = models + [getattr(model, part, None) for model in models for part in _PARTS]
    found = {id(model): model for model in models if isinstance(model, torch.nn.Module)}
    handles = [model.register_forward_pre_hook(lambda *_: check()) for model in found.values()]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


# Pipelines call these parts of a VAE directly.
_PARTS = ("encoder", "decoder")


def hide_progress() -> None:
    diffusers.utils.logging.disable_progress_bar()
    transformers.utils.logging.disable_progress_bar()


def release_memory() -> None:
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def memory_in_use(device: str) -> dict[str, int]:
    """Returns the device's memory in bytes by kind: total, reserved, used by tensors, and the peak used by tensors.
    The result is empty for the CPU."""
    if not device.startswith("cuda"):
        return {}
    return {
        "total": torch.cuda.get_device_properties(device).total_memory,
        "reserved": torch.cuda.memory_reserved(device),
        "allocated": torch.cuda.memory_allocated(device),
        "allocated_peak": torch.cuda.max_memory_allocated(device),
    }


def check_device(device: str) -> None:
    """Raises DeviceUnusable if the device cannot compute, so that a missing or old driver, or a broken card, is
    reported at startup."""
    try:
        torch.ones(1, device=device).sum().item()
    except (RuntimeError, AssertionError) as error:
        said = str(error).splitlines() or [type(error).__name__]
        raise DeviceUnusable(f"{device} cannot be used: {said[0]}") from error


def _to_frame(picture: Any) -> Frame:
    # Round on the device: bytes take a quarter of the time of floats to transfer.
    rounded = (torch.nan_to_num(picture.float()).clamp(0, 1) * 255 + 0.5).to(torch.uint8)
    return np.ascontiguousarray(rounded.permute(1, 2, 0).cpu().numpy())


class translated:
    """Converts PyTorch's device errors to the errors of this package."""

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
    """Reports whether the device still works.

    After an error of cuBLAS, cuDNN or Triton, the device may still work. If it does not, every call fails.
    """
    if not torch.cuda.is_initialized():
        return True
    try:
        torch.cuda.synchronize()
    except RuntimeError:
        return False
    return True
