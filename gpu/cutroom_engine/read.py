"""Decodes inputs as a stream.

Inputs are untrusted. Only the demuxer for the type that the worker has detected is used. It can read only the bytes
of this one file, so the file cannot make it open others.
"""

from __future__ import annotations

import errno
import math
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import av
import av.error
import av.filter
import numpy as np
from av.container import InputContainer
from av.video.reformatter import Colorspace, Interpolation
from PIL import Image, ImageOps, UnidentifiedImageError

from . import tone
from .frames import Frame
from .protocol import Input, invalid_input

_DEMUXERS = {
    "video/mp4": "mov",
    "video/quicktime": "mov",
    "video/3gpp": "mov",
    "video/webm": "matroska",
    "video/x-matroska": "matroska",
    "video/x-msvideo": "avi",
    "video/mp2t": "mpegts",
    "video/ogg": "ogg",
    "video/x-flv": "flv",
    "image/gif": "gif",
}

_IMAGES = {
    "image/png": "PNG",
    "image/jpeg": "JPEG",
    "image/webp": "WEBP",
    "image/avif": "AVIF",
    "image/bmp": "BMP",
    "image/tiff": "TIFF",
    "image/gif": "GIF",
}

# An image has at most 50 megapixels (docs/contract/media.md#input-limits). The rest is a margin, for example for
# codecs that round sides up to whole blocks.
_MAX_PIXELS = 60_000_000


@contextmanager
def opened(source: Input) -> Iterator[InputContainer]:
    """Opens the media file for decoding."""
    demuxer = _DEMUXERS.get(source.mime)
    if demuxer is None:
        raise invalid_input("The file is not a video.")
    options = {"max_streams": "64"}
    if demuxer == "mov":
        options |= {"enable_drefs": "0", "use_absolute_path": "0"}
    with open(source.path, "rb") as file:
        try:
            container = av.open(file, "r", format=demuxer, options=options, metadata_errors="ignore")
        except (av.error.FFmpegError, ValueError, OSError) as error:
            raise _explain(error) from error
        with container:
            yield container


def video_frames(source: Input, width: int, height: int, fps: float, count: int) -> Iterator[Frame]:
    """Yields `count` frames of the video with the given frame rate and size: upright, opaque and in sRGB.

    The first frame is shown from time 0, and the last one until the end. Only as much as needed is decoded.
    """
    with opened(source) as container:
        stream = _picture_track(container, source.picture_track)
        begin = (container.start_time or 0) / 1_000_000
        frames = _decoded(container, stream, source.decoder)
        if source.interlaced:
            frames = _deinterlaced(frames, stream)
        ticks = _ticks(frames, begin, fps)
        shape = 0.0
        current: Frame | None = None
        pending = next(ticks, None)
        for i in range(count):
            chosen = None
            while pending is not None and (pending[0] <= i or (current is None and chosen is None)):
                chosen = pending[1]
                pending = next(ticks, None)
            if chosen is not None:
                shape = shape or chosen.width / chosen.height
                current = _boxed(chosen, width, height, shape)
            if current is None:
                raise invalid_input("The video cannot be decoded.")
            yield current


def image(source: Input) -> Image.Image:
    """Returns the picture in an image file, or the first frame of an animation, upright and opaque."""
    form = _IMAGES.get(source.mime)
    if form is None:
        raise invalid_input("The file is not an image.")
    try:
        with Image.open(source.path, formats=[form]) as opened_image:
            if opened_image.width * opened_image.height > _MAX_PIXELS:
                raise invalid_input("The image is too large.")
            upright = ImageOps.exif_transpose(opened_image)
            if upright.has_transparency_data:
                layered = Image.new("RGBA", upright.size, "white")
                layered.alpha_composite(upright.convert("RGBA"))
                upright = layered
            return upright.convert("RGB")
    except (UnidentifiedImageError, SyntaxError, ValueError, EOFError, Image.DecompressionBombError) as error:
        raise invalid_input("The image cannot be decoded.") from error
    except OSError as error:
        if error.errno is not None:
            raise  # the disk failed, and the image may be fine
        raise invalid_input("The image cannot be decoded.") from error


def _picture_track(container: InputContainer, number: int) -> Any:
    """Returns the video track with the given index. Cover pictures do not count as tracks."""
    attached = av.stream.Disposition.attached_pic
    tracks = [stream for stream in container.streams.video if not stream.disposition & attached]
    if number >= len(tracks):
        raise invalid_input("The video has no picture.")
    tracks[number].thread_type = "AUTO"
    return tracks[number]


def _decoded(container: InputContainer, stream: Any, name: str) -> Iterator[av.VideoFrame]:
    """Yields the frames that can be decoded. Broken frames in between are skipped."""
    decoder: Any = av.CodecContext.create(name, "r") if name in ("libvpx", "libvpx-vp9") else None
    broken: Exception | None = None
    decoded = False
    try:
        for packet in container.demux(stream):
            try:
                for frame in packet.decode() if decoder is None else decoder.decode(packet if packet.size else None):
                    frame.time_base = stream.time_base
                    decoded = True
                    yield frame
            except av.error.InvalidDataError as error:
                broken = error
    except (av.error.FFmpegError, OSError) as error:
        broken = error
    if not decoded:
        raise _explain(broken) from broken


def _deinterlaced(frames: Iterator[av.VideoFrame], stream: Any) -> Iterator[av.VideoFrame]:
    """Deinterlaces frames. Frames with a different size than the first one stay interlaced."""
    graph, size = None, (0, 0)
    for frame in frames:
        if graph is None:
            size = (frame.width, frame.height)
            graph = av.filter.Graph()
            ends = graph.add_buffer(template=stream), graph.add("bwdif", "mode=send_frame:deint=interlaced")
            graph.link_nodes(*ends, graph.add("buffersink")).configure()
        if (frame.width, frame.height) != size:
            yield frame
            continue
        graph.vpush(frame)
        yield from _pulled(graph)
    if graph is not None:
        graph.vpush(None)
        yield from _pulled(graph)


def _pulled(graph: av.filter.Graph) -> Iterator[av.VideoFrame]:
    with suppress(av.error.BlockingIOError, av.error.EOFError):
        while True:
            yield graph.vpull()


def _ticks(frames: Iterator[av.VideoFrame], begin: float, fps: float) -> Iterator[tuple[int, av.VideoFrame]]:
    """Yields each frame with the index of the first frame of the result that shows it."""
    last = 0
    for frame in frames:
        tick = last if frame.time is None else math.floor((frame.time - begin) * fps + 0.5)
        last = max(last, tick, 0)
        yield last, frame


def _boxed(frame: av.VideoFrame, width: int, height: int, shape: float) -> Frame:
    """Fits a frame into the first frame's box, on black. shape is the aspect ratio of the first frame as stored."""
    share = frame.width / frame.height / shape
    if abs(share - 1) < 0.01:
        return _convert(frame, width, height)
    if round(frame.rotation / 90) % 2:
        share = 1 / share
    inner = _convert(frame, max(1, round(width * min(1, share))), max(1, round(height * min(1, 1 / share))))
    box = np.zeros((height, width, 3), dtype=np.uint8)
    top, left = (height - inner.shape[0]) // 2, (width - inner.shape[1]) // 2
    box[top : top + inner.shape[0], left : left + inner.shape[1]] = inner
    return box


def _convert(frame: av.VideoFrame, width: int, height: int) -> Frame:
    turned = round(frame.rotation / 90) % 4
    if turned % 2:
        width, height = height, width
    matrix = frame.colorspace
    if matrix == Colorspace.DEFAULT or matrix in (0, 2):
        # Players assume these matrices if the file declares none: BT.709 for high definition, otherwise BT.601.
        matrix = Colorspace.ITU709 if max(frame.width, frame.height) >= 1280 else Colorspace.ITU601
    options: dict[str, Any] = {
        "width": width,
        "height": height,
        "src_colorspace": matrix,
        "interpolation": Interpolation.BICUBIC,
    }
    picture: Frame
    if tone.is_hdr(frame.color_trc):
        deep = frame.reformat(format="rgb48le", **options).to_ndarray()
        picture = tone.tone_map(
            np.asarray(deep, dtype=np.uint16), frame.color_trc, wide=frame.color_primaries in (2, 9)
        )
    elif any(component.is_alpha for component in frame.format.components) or frame.format.name == "pal8":
        layered = frame.reformat(format="rgba", **options).to_ndarray().astype(np.uint16)
        alpha = layered[..., 3:]
        picture = ((layered[..., :3] * alpha + 255 * (255 - alpha)) // 255).astype(np.uint8)
    else:
        picture = np.asarray(frame.reformat(format="rgb24", **options).to_ndarray(), dtype=np.uint8)
    # FFmpeg's rotation angle is counterclockwise, and so is NumPy's.
    return np.ascontiguousarray(np.rot90(picture, turned)) if turned else picture


# These errors are about the machine's resources, so the input is not to blame.
_TROUBLE = {errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EMFILE, errno.ENFILE, errno.EAGAIN}
_TROUBLE |= {errno.EACCES, errno.EPERM, errno.ENOENT, errno.ESTALE}


def _explain(error: Exception | None) -> Exception:
    """Converts a decoder's error to an error that blames the input or the machine."""
    if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno in _TROUBLE):
        return error
    return invalid_input("The video cannot be decoded.")
