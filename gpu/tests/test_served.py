"""Tests rows whose model runs on another server. A mock server checks every byte of each call."""

from __future__ import annotations

import base64
import email.parser
import email.policy
import io
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from cutroom_engine.footprint import footprint
from cutroom_engine.frames import Frame
from cutroom_engine.model_map import PipelineRow
from cutroom_engine.protocol import Input, RunCancelled, RunError
from cutroom_engine.read import video_frames
from cutroom_engine.served import ServedPipeline
from cutroom_engine.styles import Shot
from cutroom_engine.write import VideoWriter

SIZE = (96, 64)
RED, BLUE = (200, 20, 20), (20, 20, 200)


@dataclass
class Call:
    """A call that the mock server has received."""

    method: str
    path: str
    headers: Any
    body: bytes

    def form(self) -> dict[str, list[Any]]:
        """Returns the fields of a multipart form, and the type, name and content of each of its files."""
        head = f"Content-Type: {self.headers['Content-Type']}\r\n\r\n".encode()
        message = email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(head + self.body)
        assert message.get_content_type() == "multipart/form-data"
        found: dict[str, list[Any]] = {}
        for part in message.iter_parts():
            name = part.get_param("name", header="content-disposition")
            content = part.get_payload(decode=True)
            known = part.get_content_type(), part.get_filename(), content
            found.setdefault(str(name), []).append(known if part.get_filename() else content.decode())
        return found


@dataclass
class Mock:
    """Responds as the real servers do. A video is complete at the third poll."""

    calls: list[Call] = field(default_factory=list)
    answers: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    video: bytes = b""
    polls: int = 0
    hold: threading.Event | None = None
    url: str = ""

    def answer(self, call: Call) -> tuple[int, bytes]:
        self.calls.append(call)
        if (scripted := self.answers.get(f"{call.method} {call.path}")) is not None:
            return scripted
        if call.path == "/v1/images/edits":
            if self.hold is not None:
                self.hold.wait(120)
            return 200, json.dumps({"data": [{"b64_json": base64.b64encode(png(BLUE)).decode()}]}).encode()
        if (call.method, call.path) == ("POST", "/v1/videos"):
            return 200, b'{"id":"video gen/1","object":"video","status":"queued","progress":0}'
        if call.path == "/v1/videos/video%20gen%2F1/content":
            return 200, self.video
        if call.path == "/v1/videos/video%20gen%2F1":
            self.polls += 1
            if self.polls > 2:
                return 200, b'{"id":"video gen/1","status":"completed","progress":100}'
            return 200, b'{"id":"video gen/1","status":"in_progress","progress":40}'
        return 404, b"{}"


@pytest.fixture
def mock(tmp_path: Path) -> Iterator[Mock]:
    """Starts a mock server."""
    state = Mock(video=clip(tmp_path / "made.mp4", BLUE, 9))

    class Handler(BaseHTTPRequestHandler):
        def serve(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, content = state.answer(Call(self.command, self.path, self.headers, body))
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_DELETE = serve

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield state
    if state.hold is not None:
        state.hold.set()
    server.shutdown()
    server.server_close()
    thread.join()


def frame(color: tuple[int, int, int]) -> Frame:
    return np.full((SIZE[1], SIZE[0], 3), color, dtype=np.uint8)


def clip(path: Path, color: tuple[int, int, int], count: int) -> bytes:
    with VideoWriter(str(path), *SIZE, 16, None) as writer:
        for _ in range(count):
            writer.write(frame(color))
    return path.read_bytes()


def png(color: tuple[int, int, int], size: tuple[int, int] = (40, 30)) -> bytes:
    content = io.BytesIO()
    Image.new("RGB", size, color).save(content, format="PNG")
    return content.getvalue()


def served(mock: Mock, name: str = "ServedVideo", server: dict[str, Any] | None = None, **row: Any) -> ServedPipeline:
    fields = {"class": name, "steps": 4, "server": {"url": mock.url, "api": "vllm-omni"} | (server or {})}
    return ServedPipeline(PipelineRow.model_validate(fields | row), "the key", poll=0.01)


def shot(count: int = 9, **changes: Any) -> Shot:
    fields: dict[str, Any] = {"prompt": "a “quiet” winter", "seed": 7, "length": count, "fps": 16}
    return Shot(width=SIZE[0], height=SIZE[1], **(fields | {"frames": [frame(RED)] * count} | changes))


def nothing(*_: object) -> None: ...


def is_a_clip(file: tuple[str, str, bytes], color: tuple[int, int, int], tmp_path: Path) -> bool:
    (tmp_path / "sent.mp4").write_bytes(file[2])
    frames = list(video_frames(Input(path=str(tmp_path / "sent.mp4"), mime="video/mp4"), *SIZE, 16, 9))
    return len(frames) == 9 and all(abs(np.mean(one, axis=(0, 1)) - color).max() < 8 for one in frames)


def test_vllm_omni_edits_a_clip(mock: Mock, tmp_path: Path) -> None:
    steps: list[float] = []
    row = {
        "guidance": 5.0,
        "shift": 3.0,
        "negative": "blur",
        "call": {"boundary_ratio": 0.5, "extra_params": {"a": [1]}},
    }
    made = served(mock, **row).run(shot(), steps.append, nothing)
    assert len(made) == 9
    assert all(abs(np.mean(one, axis=(0, 1)) - BLUE).max() < 8 for one in made)
    assert (steps, steps[-1]) == (sorted(steps), 1.0)
    assert 0.4 in steps
    asked = [f"{call.method} {call.path}" for call in mock.calls]
    video = "/v1/videos/video%20gen%2F1"
    assert asked == ["POST /v1/videos", *[f"GET {video}"] * 3, f"GET {video}/content", f"DELETE {video}"]
    assert {call.headers["Authorization"] for call in mock.calls} == {"Bearer the key"}
    form = mock.calls[0].form()
    sent = form.pop("input_reference")
    assert [one[:2] for one in sent] == [("video/mp4", "input_reference.mp4")]
    assert is_a_clip(sent[0], RED, tmp_path)
    assert form == {
        "prompt": ["a “quiet” winter"],
        "width": ["96"],
        "height": ["64"],
        "num_frames": ["9"],
        "fps": ["16"],
        "seed": ["7"],
        "num_inference_steps": ["4"],
        "guidance_scale": ["5.0"],
        "flow_shift": ["3.0"],
        "negative_prompt": ["blur"],
        "boundary_ratio": ["0.5"],
        "extra_params": ['{"a": [1]}'],
    }


@pytest.mark.parametrize("field_of", ["input_reference", "image_reference"])
def test_clip_is_edited_with_reference(mock: Mock, tmp_path: Path, field_of: str) -> None:
    server = {"clip": "control_reference", "reference": field_of}
    model = served(mock, server=server, call={"control_type": "depth"})
    picture = Image.new("RGB", (40, 30), BLUE)
    model.run(shot(references=[picture]), nothing, nothing)
    form = mock.calls[0].form()
    assert is_a_clip(form["control_reference"][0], RED, tmp_path)
    assert form["control_type"] == ["depth"]
    (sent,) = form[field_of]
    if field_of == "input_reference":
        assert sent == ("image/png", "input_reference.png", png(BLUE))
    else:
        assert json.loads(sent) == {"image_url": "data:image/png;base64," + base64.b64encode(png(BLUE)).decode()}
    model.run(shot(), nothing, nothing)
    assert all(field_of not in call.form() for call in mock.calls[-1:] if call.method == "POST")


def test_sglang_edits_a_clip(mock: Mock, tmp_path: Path) -> None:
    served(mock, server={"api": "sglang"}, guidance=1.0).run(shot(), nothing, nothing)
    form = mock.calls[0].form()
    assert is_a_clip(form.pop("input_reference")[0], RED, tmp_path)
    options = {"seed": 7, "num_inference_steps": 4, "guidance_scale": 1.0}
    size = {"num_frames": 9, "fps": 16, "seconds": 1}
    assert json.loads(form.pop("extra_body")[0]) == size | options
    assert form == {name: [str(value)] for name, value in (size | options).items()} | {
        "prompt": ["a “quiet” winter"],
        "size": ["96x64"],
    }


def test_server_makes_video_from_text(mock: Mock) -> None:
    assert len(served(mock, "ServedText", {"api": "sglang"}).run(shot(frames=[]), nothing, nothing)) == 9
    assert mock.calls[0].headers["Content-Type"] == "application/json"
    assert json.loads(mock.calls[0].body)["num_inference_steps"] == 4
    mock.polls = 0
    assert len(served(mock, "ServedText").run(shot(frames=[]), nothing, nothing)) == 9
    assert [call for call in mock.calls if call.path == "/v1/videos"][1].form()["num_frames"] == ["9"]


def test_image_is_edited_with_reference(mock: Mock) -> None:
    picture = Image.new("RGB", (40, 30), BLUE)
    (made,) = served(mock, "ServedImage").run(shot(1, references=[picture], fps=0), nothing, nothing)
    assert np.array_equal(made, frame(BLUE))
    form = mock.calls[0].form()
    first, second = form.pop("image")
    with Image.open(io.BytesIO(first[2])) as sent:
        assert np.array_equal(np.asarray(sent), frame(RED))
    assert second == ("image/png", "image.png", png(BLUE))
    assert form == {
        "prompt": ["a “quiet” winter"],
        "size": ["96x64"],
        "n": ["1"],
        "response_format": ["b64_json"],
        "output_format": ["png"],
        "seed": ["7"],
        "num_inference_steps": ["4"],
    }


VIDEO = "GET /v1/videos/video%20gen%2F1"


@pytest.mark.parametrize(
    ("call", "answer", "retryable"),
    [
        ("POST /v1/videos", (400, b"{}"), False),
        ("POST /v1/videos", (503, b"{}"), True),
        ("POST /v1/videos", (429, b"{}"), True),
        ("POST /v1/videos", (200, b"<html>"), True),
        ("POST /v1/videos", (200, b"[]"), True),
        ("POST /v1/videos", (200, b'{"status":"queued"}'), True),
        (VIDEO, (404, b"{}"), True),
        (VIDEO, (500, b"{}"), True),
        (VIDEO, (200, b'{"status":"failed","error":{"message":"/secret/path"}}'), True),
        (VIDEO + "/content", (200, b"no video"), True),
    ],
)
def test_server_faults_are_engine_errors(mock: Mock, call: str, answer: tuple[int, bytes], retryable: bool) -> None:
    mock.answers[call] = answer
    with pytest.raises(RunError) as wrong:
        served(mock).run(shot(), nothing, nothing)
    assert (wrong.value.code, wrong.value.retryable) == ("engine_error", retryable)
    assert "secret" not in wrong.value.message
    if call != "POST /v1/videos":
        assert mock.calls[-1].method == "DELETE", "the server keeps the video"


@pytest.mark.parametrize(
    "answer", [b"{}", b'{"data":[]}', b'{"data":[{"b64_json":"!"}]}', b'{"data":[{"b64_json":"AAAA"}]}']
)
def test_response_without_an_image_is_an_error(mock: Mock, answer: bytes) -> None:
    mock.answers["POST /v1/images/edits"] = 200, answer
    with pytest.raises(RunError, match="invalid response"):
        served(mock, "ServedImage").run(shot(1), nothing, nothing)


def test_unreachable_server_is_reported() -> None:
    gone = Mock(url="http://127.0.0.1:9")
    with pytest.raises(RunError, match="cannot be reached") as away:
        served(gone).run(shot(), nothing, nothing)
    assert away.value.retryable


def after(calls: int) -> Callable[[], None]:
    """Returns a function for check that cancels the run after the given number of calls."""
    left = iter(range(calls))

    def check() -> None:
        if next(left, None) is None:
            raise RunCancelled

    return check


def test_cancelled_video_is_deleted(mock: Mock) -> None:
    mock.answers[VIDEO] = 200, b'{"status":"in_progress"}'
    with pytest.raises(RunCancelled):
        served(mock).run(shot(), nothing, after(5))
    assert mock.calls[-1].method == "DELETE"


def test_cancelled_image_does_not_wait_for_the_server(mock: Mock) -> None:
    mock.hold = threading.Event()
    with pytest.raises(RunCancelled):
        served(mock, "ServedImage").run(shot(1), nothing, after(5))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"server": None}, "ServedVideo needs one"),
        ({"class": "LucyEditPipeline", "weights": "/lucy"}, "LucyEditPipeline takes none"),
        ({"weights": "/lucy"}, "weights: not allowed for a model on another server"),
        ({"storage": "fp8"}, "storage: not allowed for a model on another server"),
        ({"server": {"url": "ftp://a", "api": "sglang"}}, "server.url"),
        ({"server": {"url": "http://a", "api": "magic"}}, "server.api"),
        ({"server": {"url": "http://a", "api": "sglang", "reference": "input_reference"}}, "then no reference"),
        (
            {"server": {"url": "http://a", "api": "vllm-omni", "reference": "image_reference"}},
            "none with input_reference",
        ),
    ],
)
def test_invalid_rows_are_rejected(change: dict[str, Any], says: str) -> None:
    fields = {"class": "ServedVideo", "steps": 4, "server": {"url": "http://a:8091/v1", "api": "vllm-omni"}}
    PipelineRow.model_validate(fields)
    with pytest.raises(ValueError, match=says):
        PipelineRow.model_validate(fields | change)


def test_served_row_needs_no_memory_or_weights() -> None:
    row = PipelineRow.model_validate(
        {"class": "ServedVideo", "steps": 4, "server": {"url": "http://a", "api": "vllm-omni"}}
    )
    need = footprint("served", row)
    assert need is not None
    assert (need.alone, row.all_weights, row.references) == (0, [], False)
