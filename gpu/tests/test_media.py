"""Tests that real files are read and written correctly."""

from __future__ import annotations

import errno
import json
import subprocess
from itertools import pairwise
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from PIL import Image

from cutroom_engine import tone
from cutroom_engine.protocol import Input, RunError
from cutroom_engine.read import image, video_frames
from cutroom_engine.sound import RATE, Sound
from cutroom_engine.write import VideoWriter, write_image

from .conftest import Clip, ffmpeg


def source(path: Path, mime: str = "video/mp4") -> Input:
    return Input(path=str(path), mime=mime, audio=True)


def facts(path: Path) -> dict[str, Any]:
    out = subprocess.run(
        ["ffprobe", "-v", "error", "-show_streams", "-of", "json", str(path)], check=True, capture_output=True
    )
    return {stream["codec_type"]: stream for stream in json.loads(out.stdout)["streams"]}


def reference(path: Path, width: int, height: int, fps: int) -> list[np.ndarray]:
    """Returns the frames as the program ffmpeg decodes them."""
    filters = f"fps={fps}:start_time=0,scale={width}:{height}:flags=bicubic"
    command = ["ffmpeg", "-v", "error", "-i", str(path), "-vf", filters, "-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
    out = subprocess.run(command, check=True, capture_output=True)
    return list(np.frombuffer(out.stdout, dtype=np.uint8).reshape(-1, height, width, 3))


def difference(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.abs(a.astype(int) - b.astype(int)).mean())


@pytest.mark.parametrize(
    ("name", "mime", "more"),
    [
        ("mp4", "video/mp4", ""),
        ("mov", "video/quicktime", ""),
        ("mkv", "video/x-matroska", ""),
        ("webm", "video/webm", "-deadline realtime -cpu-used 8"),
        ("avi", "video/x-msvideo", ""),
        ("ts", "video/mp2t", ""),
        ("gif", "image/gif", ""),
    ],
)
def test_frames_match_ffmpeg(clip: Clip, name: str, mime: str, more: str) -> None:
    path = clip(name=name, more=more, sound=None)
    for fps in (10, 5, 20):
        want = reference(path, 64, 48, fps)
        frames = list(video_frames(source(path, mime), 64, 48, fps, len(want)))
        assert len(frames) == len(want)
        for frame, expected in zip(frames, want, strict=True):
            assert frame.shape == (48, 64, 3)
            assert difference(frame, expected) < 4


def test_chosen_tracks_are_read(clip: Clip) -> None:
    red = clip(video="color=c=red:s=96x64:r=10:d=0.5", sound="sine=f=300:d=0.5")
    blue = clip(video="color=c=blue:s=96x64:r=10:d=0.5", sound="sine=f=900:d=0.5")
    both = red.with_name("both.mkv")
    ffmpeg("-i", str(red), "-i", str(blue), "-map", "0", "-map", "1", "-c", "copy", str(both))
    chosen = Input(path=str(both), mime="video/x-matroska", picture_track=1, sound_track=1)
    frame = next(video_frames(chosen, 96, 64, 10, 1))
    assert frame[..., 2].mean() > 200 > frame[..., 0].mean()
    left = Sound(chosen).take(RATE // 4)[0]
    crossings = np.count_nonzero((left[:-1] < 0) & (left[1:] >= 0))
    assert abs(crossings * 4 - 900) < 40


def test_later_frames_of_another_shape_get_borders(clip: Clip) -> None:
    parts = [clip(name="ts", sound=None, video=f"color=c=white:s={size}:r=10:d=0.5") for size in ("96x64", "64x64")]
    both = parts[0].with_name("both.ts")
    listed = parts[0].with_name("list")
    listed.write_text("".join(f"file '{part}'\n" for part in parts))
    ffmpeg("-f", "concat", "-safe", "0", "-i", str(listed), "-c", "copy", str(both))
    frames = list(video_frames(source(both, "video/mp2t"), 96, 64, 10, 10))
    assert frames[0].min() > 200
    assert frames[9][:, :10].max() < 20
    assert frames[9][:, 20:76].min() > 200


def test_transparent_vp9_becomes_white(clip: Clip) -> None:
    path = clip(
        name="webm",
        sound=None,
        video="color=c=red:s=96x64:r=10:d=0.5,format=yuva420p,colorchannelmixer=aa=0",
        more="-c:v libvpx-vp9 -pix_fmt yuva420p -auto-alt-ref 0",
    )
    frames = video_frames(Input(path=str(path), mime="video/webm", decoder="libvpx-vp9"), 96, 64, 10, 1)
    assert next(frames).min() > 240


def test_fields_are_deinterlaced(clip: Clip) -> None:
    moving = "nullsrc=s=96x64:r=50:d=0.5,geq=lum='255*lt(mod(X+8*N,48),24)':cb=128:cr=128"
    path = clip(
        name="ts",
        sound=None,
        video=moving + ",tinterlace=interleave_top,setfield=tff",
        more="-flags +ildct+ilme -b:v 8M",
    )
    made = source(path, "video/mp2t")

    def combs(chosen: Input) -> float:
        frame = list(video_frames(chosen, 96, 64, 25, 10))[5].astype(int)
        return float(np.abs(2 * frame[1:-1] - frame[:-2] - frame[2:]).mean())

    assert combs(made.model_copy(update={"interlaced": True})) < combs(made) / 4


def test_short_clip_ends_with_its_last_picture(clip: Clip) -> None:
    frames = list(video_frames(source(clip()), 96, 64, 10, 9))
    assert len(frames) == 9
    assert all(np.array_equal(frame, frames[4]) for frame in frames[5:])


def test_video_that_begins_late_repeats_its_first_frame(clip: Clip) -> None:
    path = clip(video="testsrc2=s=96x64:r=10:d=0.3")
    late = path.with_name("late.mp4")
    ffmpeg("-itsoffset", "0.2", "-i", str(path), "-i", str(path), "-map", "0:v", "-map", "1:a", "-c", "copy", str(late))
    frames = list(video_frames(source(late), 96, 64, 10, 5))
    assert difference(frames[0], frames[1]) == 0
    assert difference(frames[2], frames[3]) > 0


@pytest.mark.parametrize("degrees", [90, 180, 270])
def test_clip_is_turned_upright(clip: Clip, degrees: int) -> None:
    flat = clip(sound=None)
    turned = flat.with_name("turned.mp4")
    ffmpeg("-i", str(flat), "-c", "copy", "-metadata:s:v", f"rotate={degrees}", str(turned))
    size = (96, 64) if degrees == 180 else (64, 96)
    frame = next(video_frames(source(turned), *size, 10, 1))
    assert difference(frame, reference(turned, *size, 10)[0]) < 4


def test_hdr_clip_is_tone_mapped(clip: Clip) -> None:
    path = clip(
        name="mkv",
        sound=None,
        video="color=c=0x949494:s=96x64:r=10:d=0.2,format=yuv420p10le",
        more="-c:v libx265 -preset ultrafast -x265-params "
        "log-level=error:colorprim=bt2020:transfer=smpte2084:colormatrix=bt2020nc",
    )
    plain = reference(path, 96, 64, 10)[0]
    mapped = next(video_frames(source(path, "video/x-matroska"), 96, 64, 10, 1))
    # PQ encodes the white of ordinary pictures as 0.58.
    assert mapped.mean() > plain.mean() + 40
    assert mapped.mean() < 250


def test_tone_mapping_keeps_the_order_of_brightness() -> None:
    steps = np.linspace(0, 65535, 256).astype(np.uint16)
    ramp = np.repeat(steps[None, :, None], 3, axis=2)
    for transfer in (tone.PQ, tone.HLG):
        mapped = tone.tone_map(ramp, transfer, wide=True)[0, :, 1].astype(int)
        assert mapped[0] == 0
        assert mapped[-1] > 235
        assert all(b >= a for a, b in pairwise(mapped))


@pytest.mark.parametrize(
    "content",
    [b"", b"text", b"\x00\x00\x00\x18ftypisom" + bytes(range(256)) * 40, b"#EXTM3U\nfile:///etc/passwd\n"],
)
def test_non_videos_are_rejected(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "noise"
    path.write_bytes(content)
    for mime in ("video/mp4", "video/webm", "video/x-msvideo", "application/x-mpegurl"):
        with pytest.raises(RunError) as raised:
            list(video_frames(source(path, mime), 96, 64, 10, 5))
        assert (raised.value.code, raised.value.retryable) == ("invalid_input", False)
        assert str(path) not in raised.value.message


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN, errno.EROFS, errno.EACCES])
def test_machine_error_is_not_blamed_on_the_video(clip: Clip, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def fail(*_: object, **__: object) -> None:
        av.error.err_check(-number)

    path = clip()
    monkeypatch.setattr(av, "open", fail)
    with pytest.raises((OSError, MemoryError)):
        next(video_frames(source(path), 64, 36, 10, 1))


def test_truncated_video_is_decoded_as_far_as_possible(clip: Clip) -> None:
    path = clip(more="-movflags +faststart -g 1")
    content = path.read_bytes()
    path.write_bytes(content[: len(content) * 2 // 3])
    assert len(list(video_frames(source(path), 96, 64, 10, 5))) == 5


def test_sound_alone_is_not_a_video(clip: Clip, tmp_path: Path) -> None:
    path = tmp_path / "sound.mp4"
    ffmpeg("-f", "lavfi", "-i", "sine=d=1", str(path))
    with pytest.raises(RunError, match="no picture"):
        list(video_frames(source(path), 96, 64, 10, 1))


def test_sound_stays_in_sync(clip: Clip) -> None:
    # The sound is silent until 0.25 s.
    path = clip(video="color=s=96x64:r=10:d=1", sound="aevalsrc=gte(t\\,0.25)*sin(2000*t):d=1:s=44100")
    sound = Sound(source(path))
    samples = np.concatenate([sound.take(1000) for _ in range(60)], axis=1)
    sound.close()
    assert samples.shape == (2, 60_000)
    begins = np.argmax(np.abs(samples[0]) > 0.1) / RATE
    assert abs(begins - 0.25) < 0.01
    assert not samples[:, int(1.1 * RATE) :].any(), "after the end there is silence"


def test_result_plays_in_browsers(clip: Clip, tmp_path: Path) -> None:
    path = tmp_path / "out.mp4"
    frames = list(video_frames(source(clip()), 64, 48, 10, 5))
    with VideoWriter(str(path), 96, 72, 10, Sound(source(clip()))) as writer:
        for frame in frames:
            writer.write(frame)
    found = facts(path)
    video, audio = found["video"], found["audio"]
    assert (video["codec_name"], video["profile"], video["pix_fmt"]) == ("h264", "High", "yuv420p")
    assert (video["width"], video["height"], video["nb_frames"], video["r_frame_rate"]) == (96, 72, "5", "10/1")
    assert {video[name] for name in ("color_space", "color_transfer", "color_primaries")} == {"bt709"}
    assert video["color_range"] == "tv"
    assert audio["codec_name"] == "aac"
    assert abs(float(audio["duration"]) - 0.5) < 0.05
    content = path.read_bytes()
    assert content.index(b"moov") < content.index(b"mdat")
    # Written colors are read back unchanged.
    with av.open(str(path)) as container:
        decoded = next(container.decode(video=0))
        shown = decoded.reformat(64, 48, "rgb24", src_colorspace="ITU709", interpolation="BICUBIC").to_ndarray()
    assert difference(shown, frames[0]) < 8


def test_same_frames_give_the_same_file(tmp_path: Path) -> None:
    frames = [np.random.default_rng(i).integers(0, 255, (64, 96, 3), dtype=np.uint8) for i in range(5)]
    for name in ("a.mp4", "b.mp4"):
        with VideoWriter(str(tmp_path / name), 96, 64, 10, None) as writer:
            for frame in frames:
                writer.write(frame)
    assert (tmp_path / "a.mp4").read_bytes() == (tmp_path / "b.mp4").read_bytes()


@pytest.mark.parametrize(
    ("name", "mime"),
    [
        ("a.png", "image/png"),
        ("a.jpg", "image/jpeg"),
        ("a.webp", "image/webp"),
        ("a.bmp", "image/bmp"),
        ("a.tif", "image/tiff"),
        ("a.gif", "image/gif"),
        ("a.avif", "image/avif"),
    ],
)
def test_images_of_every_type(tmp_path: Path, name: str, mime: str) -> None:
    path = tmp_path / name
    Image.new("RGB", (48, 32), (200, 30, 30)).save(path)
    read = image(source(path, mime))
    assert (read.size, read.mode) == ((48, 32), "RGB")
    assert difference(np.asarray(read)[0, 0], np.array([200, 30, 30])) < 8


def test_image_is_upright_and_opaque(tmp_path: Path) -> None:
    turned = Image.new("RGB", (48, 32))
    exif = turned.getexif()
    exif[0x0112] = 6
    turned.save(tmp_path / "turned.jpg", exif=exif)
    assert image(source(tmp_path / "turned.jpg", "image/jpeg")).size == (32, 48)
    Image.new("RGBA", (4, 4), (255, 0, 0, 0)).save(tmp_path / "clear.png")
    assert image(source(tmp_path / "clear.png", "image/png")).getpixel((0, 0)) == (255, 255, 255)


def test_non_images_are_rejected(tmp_path: Path) -> None:
    path = tmp_path / "noise"
    huge = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x01\x00\x00\x00\x01\x00\x00\x08\x02\x00\x00\x00" + bytes(4)
    for content in (b"", b"text", b"\x89PNG\r\n\x1a\n" + bytes(100), huge):
        path.write_bytes(content)
        for mime in ("image/png", "image/jpeg", "image/svg+xml"):
            with pytest.raises(RunError) as raised:
                image(source(path, mime))
            assert raised.value.code == "invalid_input"


def test_image_has_the_requested_size(tmp_path: Path) -> None:
    path = tmp_path / "out.png"
    write_image(str(path), np.full((64, 96, 3), 128, dtype=np.uint8), 90, 60)
    with Image.open(path) as written:
        assert (written.size, written.mode, written.format) == ((90, 60), "RGB", "PNG")
