"""The messages of live sessions, version 1. shared/engine/engineserver/livewire describes the
protocol."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

VERSION = 1
PATH = "/v1/live"
CONTENT_TYPE = "application/vnd.cutroom.live"

# The limits of a message: the bytes of a text, the pixels of a frame, and the pixels of an image.
MAX_TEXT = 64 * 2**10
MAX_PIXELS = 1920 * 1088
MAX_IMAGE_PIXELS = 2**20

_TEXT, _PICTURE, _IMAGE = 1, 2, 3

# Three headers: of a message (kind, length), of a frame (number, width, height, range), and of an image (number,
# width, height).
_HEAD = struct.Struct(">B3xI")
_PICTURE_HEAD = struct.Struct(">IHHB3x")
_IMAGE_HEAD = struct.Struct(">IHH")

_LONGEST = {
    _TEXT: MAX_TEXT,
    # Chroma planes round odd sides up, which adds at most one byte per plane here.
    _PICTURE: _PICTURE_HEAD.size + 2 * MAX_PIXELS + 2,
    _IMAGE: _IMAGE_HEAD.size + 4 * MAX_IMAGE_PIXELS,
}


class WireError(Exception):
    """A message violates the protocol."""


@dataclass(frozen=True)
class Picture:
    """A frame in luma and chroma (BT.601, 4:2:0): the planes of Y, Cb and Cr, without gaps."""

    number: int
    width: int
    height: int
    # Whether the range is limited: luma from 16 to 235, and chroma from 16 to 240.
    narrow: bool
    planes: bytes | bytearray


@dataclass(frozen=True)
class Image:
    """A reference image, which this server does not support. An image without pixels removes the reference."""

    number: int
    empty: bool


Message = Picture | Image | dict[str, Any]


def planes_of(width: int, height: int) -> tuple[int, int]:
    """Returns the number of bytes in the luma plane and in each chroma plane."""
    return width * height, (width + 1) // 2 * ((height + 1) // 2)


class Reader:
    """Splits a stream into messages. It buffers at most one incomplete message."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[Message]:
        """Yields the messages that are complete with the new data. Raises WireError."""
        self._buffer += data
        while len(self._buffer) >= _HEAD.size:
            kind, length = _HEAD.unpack_from(self._buffer)
            if length > _LONGEST.get(kind, -1) or any(self._buffer[1:4]):
                raise WireError(f"a message of kind {kind} with {length} bytes")
            end = _HEAD.size + length
            if len(self._buffer) < end:
                return
            payload = self._buffer[_HEAD.size : end]
            del self._buffer[:end]
            yield _parse(kind, payload)


def _parse(kind: int, payload: bytearray) -> Message:
    if kind == _TEXT:
        try:
            text = json.loads(payload)
        except ValueError as error:
            raise WireError("the text is not JSON") from error
        if not isinstance(text, dict):
            raise WireError("the text is not a JSON object")
        return text
    if kind == _IMAGE:
        if len(payload) < _IMAGE_HEAD.size:
            raise WireError("an image without a header")
        number, width, height = _IMAGE_HEAD.unpack_from(payload)
        return Image(number, width * height == 0)
    return _picture(payload)


def _picture(payload: bytearray) -> Picture:
    if len(payload) < _PICTURE_HEAD.size:
        raise WireError("a picture without a header")
    number, width, height, narrow = _PICTURE_HEAD.unpack_from(payload)
    luma, chroma = planes_of(width, height)
    planes = payload[_PICTURE_HEAD.size :]
    if not 0 < width * height <= MAX_PIXELS or narrow > 1 or len(planes) != luma + 2 * chroma:
        raise WireError(f"a picture of {width}x{height} with {len(planes)} bytes")
    return Picture(number, width, height, narrow == 1, planes)


def text(line: Mapping[str, Any]) -> bytes:
    content = json.dumps(line, separators=(",", ":")).encode()
    return _HEAD.pack(_TEXT, len(content)) + content


def picture(made: Picture) -> bytes:
    head = _PICTURE_HEAD.pack(made.number, made.width, made.height, made.narrow)
    return b"".join((_HEAD.pack(_PICTURE, len(head) + len(made.planes)), head, made.planes))
