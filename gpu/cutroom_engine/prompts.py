"""Encodes prompts and caches them, so that a text encoder can leave the device while other models compute."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

import torch

# The number of encoded prompts to cache. All windows of a run use the same prompt, and some prompts are used again.
_KEPT = 8

# How much memory encoding needs, as a multiple of the encoder's weights.
_SPARE = 1.1


class Prompts:
    """Lets a pipeline encode its prompts with a text encoder that it shares with other pipelines. The encoder is on
    the device only while it encodes."""

    def __init__(self, pipe: Any, encoder: Any, device: str) -> None:
        self.encoder = encoder
        self._pipe = pipe
        self._device = device
        self._encode: Callable[..., Any] = pipe.encode_prompt
        self._kept: OrderedDict[tuple[tuple[str, Any], ...], Any] = OrderedDict()
        # This is the only method in which pipelines use their text encoder.
        pipe.encode_prompt = self._encoded

    def _encoded(self, **arguments: Any) -> Any:
        """Replaces the pipeline's method."""
        if "image" in arguments:  # the model may use it like the prompt, and images rarely recur
            return self._anew(arguments)
        key = tuple(sorted(arguments.items()))
        if key not in self._kept:
            self._kept[key] = self._anew(arguments)
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        return self._kept[key]

    def _anew(self, arguments: Mapping[str, Any]) -> Any:
        """Gives the pipeline the encoder for a while. Pipelines must not keep it, because they derive their own
        device from their parts. If the device has too little memory, the CPU encodes."""
        free, size = free_memory(self._device), sum(part.nbytes for part in self.encoder.parameters())
        device = self._device if free is None or free > size * _SPARE else "cpu"
        restore = _brought(self.encoder, device)
        self._pipe.text_encoder = self.encoder
        try:
            return _moved(self._encode(**{**arguments, "device": device}), self._device)
        finally:
            self._pipe.text_encoder = None
            restore()


def free_memory(device: Any) -> int | None:
    """Returns how many bytes of the device's memory are free, or None for the CPU."""
    device = torch.device(device)
    if device.type != "cuda":
        return None
    free, _ = torch.cuda.mem_get_info(device)
    return int(free + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device))


def _moved(value: Any, device: str) -> Any:
    if isinstance(value, tuple | list):
        return type(value)(_moved(part, device) for part in value)
    return value.to(device) if isinstance(value, torch.Tensor) else value


def _brought(encoder: Any, device: str) -> Callable[[], None]:
    """Copies the encoder's weights to the device. The returned function drops the copy. Encoding does not change
    weights, so they need not be copied back."""
    tensors = [*encoder.parameters(), *encoder.buffers()]
    at_home = [tensor.data for tensor in tensors]

    def restore() -> None:
        for tensor, data in zip(tensors, at_home, strict=True):
            tensor.data = data

    try:
        for tensor, data in zip(tensors, at_home, strict=True):
            tensor.data = data.to(device, copy=True)
    except BaseException:
        restore()  # not all of the weights fit into memory
        raise
    return restore
