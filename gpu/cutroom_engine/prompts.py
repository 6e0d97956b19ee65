"""Prompts as their text encoders see them: each is encoded once, and the encoder may leave
the device while the rest works."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

# How many prompts are remembered: a run of several windows has one, and some come again.
_KEPT = 8


class Prompts:
    """The encoded prompts of a pipeline, as the arguments of its call."""

    def __init__(self, pipe: Any, encoder: Any, leaves: bool) -> None:
        self._pipe = pipe
        self._encoder = encoder
        self._leaves = leaves
        self._kept: OrderedDict[tuple[str, str | None, bool], dict[str, Any]] = OrderedDict()

    def arguments(self, prompt: str, negative: str | None, guided: bool, device: str) -> dict[str, Any]:
        """Returns what takes the place of prompt and negative prompt in a call."""
        key = (prompt, negative if guided else None, guided)
        if key not in self._kept:
            with _present(self._pipe, self._encoder, device if self._leaves else None):
                self._kept[key] = _encoded(self._pipe, *key, device)
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        return {"prompt": None, **self._kept[key]}


def _encoded(pipe: Any, prompt: str, negative: str | None, guided: bool, device: str) -> dict[str, Any]:
    if hasattr(pipe, "_get_t5_prompt_embeds"):
        embeds, unwanted = pipe.encode_prompt(
            prompt=prompt,
            negative_prompt=negative,
            do_classifier_free_guidance=guided,
            max_sequence_length=512,
            device=torch.device(device),
        )
        return {"prompt_embeds": embeds} | (
            {"negative_prompt": None, "negative_prompt_embeds": unwanted} if guided else {}
        )
    embeds, _ = pipe.encode_prompt(prompt=prompt, device=torch.device(device))
    return {"prompt_embeds": embeds}


@contextmanager
def _present(pipe: Any, encoder: Any, device: str | None) -> Iterator[None]:
    """Lends the pipeline its encoder, which it has only now: what it finds among its parts
    decides where it works. With a device the encoder comes there and leaves again."""
    restore: Callable[[], None] = _brought(encoder, device) if device is not None else lambda: None
    pipe.text_encoder = encoder
    try:
        yield
    finally:
        pipe.text_encoder = None
        restore()


def _brought(encoder: Any, device: str) -> Callable[[], None]:
    """Copies the encoder to the device; what is returned lets the copy go. Nothing is copied
    back, because nothing has changed."""
    tensors = [*encoder.parameters(), *encoder.buffers()]
    at_home = [tensor.data for tensor in tensors]

    def restore() -> None:
        for tensor, data in zip(tensors, at_home, strict=True):
            tensor.data = data

    try:
        for tensor, data in zip(tensors, at_home, strict=True):
            tensor.data = data.to(device, copy=True)
    except BaseException:
        restore()  # the memory did not suffice for all of it
        raise
    return restore
