"""Runs models on separate servers, for example with several cards. vLLM-Omni and SGLang serve diffusion models
through OpenAI's API: POST /v1/videos and /v1/images/edits."""

from __future__ import annotations

import base64
import binascii
import http.client
import io
import json
import secrets
import socket
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as StillRunning
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import numpy as np
from PIL import Image

from .frames import Frame
from .model_map import PipelineRow, ServerRow
from .previews import Previews
from .protocol import Input, RunError
from .read import video_frames
from .styles import STYLES, Shot
from .write import VideoWriter

# The time limit of a call that does not wait for a model, and how often to poll a video, in seconds.
_CALL, _POLL = 60.0, 1.0

# After this many failed polls in a row, the run fails.
_LOST = 10

# The maximum size of a response in bytes: for a record or an image, and for a video.
_MAX_ANSWER, _MAX_VIDEO = 64 << 20, 1 << 30

_AWAY = RunError("engine_error", "The engine's server cannot be reached.", retryable=True)
_REFUSED = RunError("engine_error", "The engine's server rejected the edit.")
_BUSY = RunError("engine_error", "The engine's server is not accepting edits at the moment.", retryable=True)
_BROKE = RunError("engine_error", "The engine's server stopped during the edit.", retryable=True)
_NONSENSE = RunError("engine_error", "The engine's server returned an invalid response.", retryable=True)

Check = Callable[[], None]


@dataclass
class _Form:
    """A multipart form."""

    fields: dict[str, str] = field(default_factory=dict)
    # For each file: the field, MIME type, extension and content.
    files: list[tuple[str, str, str, bytes]] = field(default_factory=list)

    def encoded(self) -> tuple[bytes, str]:
        """Returns the body and its content type."""
        boundary = secrets.token_hex(16)
        body = io.BytesIO()
        for name, value in self.fields.items():
            body.write(f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n'.encode())
            body.write(value.encode() + b"\r\n")
        for name, mime, extension, content in self.files:
            head = f'Content-Disposition: form-data; name="{name}"; filename="{name}{extension}"'
            body.write(f"--{boundary}\r\n{head}\r\nContent-Type: {mime}\r\n\r\n".encode() + content + b"\r\n")
        body.write(f"--{boundary}--\r\n".encode())
        return body.getvalue(), f"multipart/form-data; boundary={boundary}"


class ServedPipeline:
    """A pipeline that runs on another server. It implements pipeline.Pipeline."""

    def __init__(self, row: PipelineRow, key: str = "", *, poll: float = _POLL) -> None:
        """key is the server's API key. "" means no key."""
        assert row.server is not None
        self._row = row
        self._server: ServerRow = row.server
        self._key = key
        self._poll = poll
        self._takes = STYLES[row.class_name].takes

    def run(
        self, shot: Shot, on_step: Callable[[float], None], check: Check, previews: Previews | None = None
    ) -> list[Frame]:
        """Implements pipeline.Pipeline. These servers send no previews."""
        check()
        if self._takes == "image":
            made = [self._image(shot, check)]
            on_step(1.0)
            return made
        with tempfile.TemporaryDirectory() as folder:
            return self._video(shot, Path(folder), on_step, check)

    def close(self) -> None:
        """Does nothing, because there is nothing to release."""

    def _video(self, shot: Shot, folder: Path, on_step: Callable[[float], None], check: Check) -> list[Frame]:
        body, kind = self._request(shot, folder)
        record = _record(self._call("POST", "/v1/videos", body, kind))
        if not isinstance(record.get("id"), str) or not record["id"]:
            raise _NONSENSE
        path = "/v1/videos/" + quote(record["id"], safe="")
        try:
            self._await(path, record, on_step, check)
            made = folder / "made.mp4"
            made.write_bytes(self._call("GET", path + "/content", most=_MAX_VIDEO))
        finally:
            self._forget(path)
        check()
        try:
            return list(
                video_frames(Input(path=str(made), mime="video/mp4"), shot.width, shot.height, shot.fps, shot.length)
            )
        except RunError as error:
            raise _NONSENSE from error

    def _await(self, path: str, record: dict[str, Any], on_step: Callable[[float], None], check: Check) -> None:
        """Waits until the video is complete."""
        lost, reached = 0, 0.0
        while (status := record.get("status")) != "completed":
            if status in ("failed", "cancelled", "deleted"):
                raise RunError("engine_error", "The engine's server failed.", retryable=True)
            progress = record.get("progress")
            if isinstance(progress, int | float) and reached < progress / 100 < 1:
                reached = progress / 100
                on_step(reached)
            check()
            time.sleep(self._poll)
            try:
                record, lost = _record(self._call("GET", path)), 0
            except RunError as error:
                lost += 1
                if lost >= _LOST or not error.retryable:
                    raise _BROKE from error
        on_step(1.0)

    def _forget(self, path: str) -> None:
        """Asks the server, once, to stop and delete the video. A failure is ignored, because servers delete old
        videos anyway."""
        try:
            self._call("DELETE", path)
        except RunError:
            return

    def _request(self, shot: Shot, folder: Path) -> tuple[bytes, str]:
        """Returns the body and the content type of the call that requests a video."""
        options = self._options(shot)
        clip = _clip(shot, folder) if shot.frames else None
        size = {"num_frames": shot.length, "fps": shot.fps}
        if self._server.api == "sglang":
            size |= {"seconds": max(1, -(-shot.length // shot.fps))}
            fields = {"prompt": shot.prompt, "size": f"{shot.width}x{shot.height}", **size}
            if clip is None:
                return json.dumps(fields | options).encode(), "application/json"
            form = _Form(_texts(fields | options | {"extra_body": size | options}))
        else:
            form = _Form(_texts({"prompt": shot.prompt, "width": shot.width, "height": shot.height, **size, **options}))
        if clip is not None:
            _add(form, self._server.clip, "video", "video/mp4", ".mp4", clip)
        if shot.references and self._server.reference is not None:
            _add(form, self._server.reference, "image", "image/png", ".png", _png(shot.references[0]))
        return form.encoded()

    def _options(self, shot: Shot) -> dict[str, Any]:
        row = self._row
        known = {
            "seed": shot.seed,
            "num_inference_steps": row.steps,
            "guidance_scale": row.guidance,
            "flow_shift": row.shift,
            "negative_prompt": row.negative,
        }
        return {name: value for name, value in known.items() if value is not None} | row.call

    def _image(self, shot: Shot, check: Check) -> Frame:
        form = _Form(_texts({"prompt": shot.prompt, "size": f"{shot.width}x{shot.height}", "n": 1}))
        form.fields |= {"response_format": "b64_json", "output_format": "png"} | _texts(self._options(shot))
        for picture in (Image.fromarray(shot.frames[0]), *shot.references):
            _add(form, "image", "image", "image/png", ".png", _png(picture))
        answer = _record(self._patiently("/v1/images/edits", *form.encoded(), check))
        try:
            content = base64.b64decode(answer["data"][0]["b64_json"], validate=True)
            with Image.open(io.BytesIO(content), formats=["PNG", "JPEG", "WEBP"]) as picture:
                made = picture.convert("RGB").resize((shot.width, shot.height), Image.Resampling.LANCZOS)
        except (KeyError, IndexError, TypeError, ValueError, OSError, binascii.Error, SyntaxError) as error:
            raise _NONSENSE from error
        return np.asarray(made, dtype=np.uint8)

    def _patiently(self, path: str, body: bytes, kind: str, check: Check) -> bytes:
        """Makes a call that lasts as long as the model works. The call is cancelled when the run ends."""
        connection = self._connect(None)
        with ThreadPoolExecutor(1) as pool:
            answer: Future[bytes] = pool.submit(self._exchange, connection, "POST", path, body, kind, _MAX_ANSWER)
            try:
                while True:
                    try:
                        return answer.result(self._poll)
                    except StillRunning:
                        check()
            finally:
                _end(connection)

    def _call(
        self, method: str, path: str, body: bytes | None = None, kind: str = "", most: int = _MAX_ANSWER
    ) -> bytes:
        connection = self._connect(_CALL)
        try:
            return self._exchange(connection, method, path, body, kind, most)
        finally:
            connection.close()

    def _connect(self, timeout: float | None) -> http.client.HTTPConnection:
        url = urlsplit(self._server.url)
        kind = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
        connection = kind(url.hostname or "", url.port, timeout=_CALL)
        try:
            connection.connect()
        except OSError as error:
            raise _AWAY from error
        connection.sock.settimeout(timeout)
        return connection

    def _exchange(
        self, connection: http.client.HTTPConnection, method: str, path: str, body: bytes | None, kind: str, most: int
    ) -> bytes:
        headers = {"Content-Type": kind} if kind else {}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        base = urlsplit(self._server.url).path.rstrip("/").removesuffix("/v1")
        try:
            connection.request(method, base + path, body, headers)
            response = connection.getresponse()
            content = response.read(most + 1)
        except (OSError, http.client.HTTPException) as error:
            raise _BROKE from error
        if response.status != 200:
            raise _BUSY if response.status >= 500 or response.status == 429 else _REFUSED
        if len(content) > most:
            raise _NONSENSE
        return content


def _end(connection: http.client.HTTPConnection) -> None:
    """Cancels a call that another thread waits for."""
    if connection.sock is not None:
        with suppress(OSError):
            connection.sock.shutdown(socket.SHUT_RDWR)
    connection.close()


def _record(content: bytes) -> dict[str, Any]:
    try:
        record = json.loads(content)
    except ValueError as error:
        raise _NONSENSE from error
    if not isinstance(record, dict):
        raise _NONSENSE
    return record


def _texts(fields: dict[str, Any]) -> dict[str, str]:
    """Returns the fields of a form. Values other than strings and numbers are encoded as JSON."""
    return {name: value if isinstance(value, str) else json.dumps(value) for name, value in fields.items()}


def _add(form: _Form, name: str, of: str, mime: str, extension: str, content: bytes) -> None:
    """Adds a file to the form: as a file, or for reference fields as a data URL."""
    if name.endswith("_reference") and name.startswith(("image", "video")):
        form.fields[name] = json.dumps({f"{of}_url": f"data:{mime};base64,{base64.b64encode(content).decode()}"})
    else:
        form.files.append((name, mime, extension, content))


def _clip(shot: Shot, folder: Path) -> bytes:
    path = folder / "clip.mp4"
    with VideoWriter(str(path), shot.width, shot.height, shot.fps, None) as writer:
        for frame in shot.frames:
            writer.write(frame)
    return path.read_bytes()


def _png(picture: Image.Image) -> bytes:
    content = io.BytesIO()
    picture.save(content, format="PNG")
    return content.getvalue()
