"""Encoded prompts: each is encoded once, and the encoders may leave the device while the rest
computes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

# The number of cached prompts. A run of several windows has one prompt, and some prompts recur.
_KEPT = 8


class Prompts:
    """Lets a pipeline encode its prompts with text encoders that are not its own."""

    def __init__(self, pipe: Any, encoders: Mapping[str, Any], device: str, leaves: bool) -> None:
        """encoders are the parts that the pipeline lacks, by name. With leaves, they come to the
        device only to encode."""
        self.encoders = dict(encoders)
        self._pipe = pipe
        self._device = device if leaves else None
        self._encode: Callable[..., Any] = pipe.encode_prompt
        self._kept: OrderedDict[tuple[tuple[str, Any], ...], Any] = OrderedDict()
        # Pipelines use their text encoders only here.
        pipe.encode_prompt = self._encoded

    def _encoded(self, **arguments: Any) -> Any:
        """Replaces the pipeline's method."""
        if "image" in arguments:  # the model may use the image as a prompt too, and an image does not recur
            return self._anew(arguments)
        key = tuple(sorted(arguments.items()))
        if key not in self._kept:
            self._kept[key] = self._anew(arguments)
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        return self._kept[key]

    def _anew(self, arguments: Mapping[str, Any]) -> Any:
        with ExitStack() as lent:
            for name, encoder in self.encoders.items():
                lent.enter_context(_lent(self._pipe, name, encoder, self._device))
            return self._encode(**arguments)


@contextmanager
def _lent(pipe: Any, name: str, encoder: Any, device: str | None) -> Iterator[None]:
    """Lends the pipeline an encoder temporarily, because a pipeline takes its device from its
    parts. With a device, the encoder moves there and back."""
    restore: Callable[[], None] = _brought(encoder, device) if device is not None else lambda: None
    setattr(pipe, name, encoder)
    try:
        yield
    finally:
        setattr(pipe, name, None)
        restore()


def _brought(encoder: Any, device: str) -> Callable[[], None]:
    """Copies the encoder to the device; the returned function drops the copy. The encoder is
    unchanged, so no copy back is needed."""
    tensors = [*encoder.parameters(), *encoder.buffers()]
    at_home = [tensor.data for tensor in tensors]

    def restore() -> None:
        for tensor, data in zip(tensors, at_home, strict=True):
            tensor.data = data

    try:
        for tensor, data in zip(tensors, at_home, strict=True):
            tensor.data = data.to(device, copy=True)
    except BaseException:
        restore()  # there was not enough memory for all of it
        raise
    return restore
