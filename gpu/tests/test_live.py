"""Tests live sessions over HTTP, with a model that inverts pictures."""

from __future__ import annotations

import itertools
import queue
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx2
import pytest
import uvicorn

from cutroom_engine import live_wire as wire
from cutroom_engine.live import Check, Live
from cutroom_engine.metrics import Metrics
from cutroom_engine.model_map import LiveMap
from cutroom_engine.pipeline import DeviceLost
from cutroom_engine.protocol import invalid_input
from cutroom_engine.residents import Residents
from cutroom_engine.runs import Runner
from cutroom_engine.server import Server, create_app

from .conftest import Inverter, model_map
from .live_client import LiveClient, picture

PATIENCE = 120.0


class Mirror:
    """A model that inverts luma. Tests can decide what happens in its next calls."""

    def __init__(self) -> None:
        # These are called in each edit, and whenever a prompt is prepared.
        self.on_edit: Callable[[Check], None] = lambda _: None
        self.on_prompt: Callable[[str], None] = lambda _: None
        self.edits: queue.Queue[tuple[int, Any]] = queue.Queue()

    def warm(self, check: Check) -> None:
        """Implements live.LiveModel."""

    def encode(self, prompt: str) -> tuple[Any, str]:
        """Implements live.LiveModel."""
        self.on_prompt(prompt)
        return prompt, "It is long." if len(prompt) > 100 else ""

    def edit(self, picture: wire.Picture, prompt: Any, seed: int, check: Check) -> wire.Picture:
        """Implements live.LiveModel."""
        self.edits.put((picture.number, prompt))
        self.on_edit(check)
        luma, _ = wire.planes_of(picture.width, picture.height)
        planes = bytes(255 - value for value in picture.planes[:luma]) + picture.planes[luma:]
        return wire.Picture(picture.number, picture.width, picture.height, picture.narrow, planes)


class Place:
    """A server for live sessions."""

    def __init__(self, load: Callable[[Any], Any], sessions: int) -> None:
        row = {"weights": "/models/sd-turbo", "steps": 2}
        rows = LiveMap.model_validate(
            {"sessions": sessions, "pipelines": {"turbo": row}, "models": {"gen-2.5": "turbo"}}
        )
        models, self.metrics = model_map(), Metrics()
        residents = Residents(models.pipelines, None, lambda *_: Inverter())
        runner = Runner(models, residents, self.metrics, missing=lambda _: [])
        self.live = Live(rows, load, self.metrics.live_picture)
        app = create_app(runner, self.metrics, self.live)
        self.server = Server(uvicorn.Config(app, log_config=None, timeout_graceful_shutdown=1), runner, self.live)
        listener = socket.create_server(("127.0.0.1", 0))
        self.port = listener.getsockname()[1]
        self._thread = threading.Thread(target=self.server.run, kwargs={"sockets": [listener]})
        self._thread.start()

    def catalogue(self) -> dict[str, Any]:
        """Returns the server's list of live models."""
        answer: dict[str, Any] = httpx2.get(f"http://127.0.0.1:{self.port}{wire.PATH}", timeout=PATIENCE).json()
        return answer

    def becomes(self, is_so: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Waits until the list of live models satisfies the condition."""
        pause = threading.Event()
        end = time.monotonic() + PATIENCE
        while not is_so(reported := self.catalogue()):
            assert time.monotonic() < end, reported
            pause.wait(0.01)
        return reported

    def open(self) -> LiveClient:
        """Opens a session as soon as the model is ready and a session is free."""
        self.becomes(lambda now: now["models"]["gen-2.5"]["ready"] and now["open"] < now["sessions"])
        client = LiveClient(self.port)
        assert (client.status, client.next()) == (200, {"ready": {"engine": "sd-turbo"}})
        return client

    def end(self) -> None:
        """Stops the server."""
        self.server.should_exit = True
        self._thread.join()


Start = Callable[..., Place]


@pytest.fixture
def start() -> Iterator[Start]:
    places: list[Place] = []

    def begin(model: Mirror, sessions: int = 2) -> Place:
        places.append(Place(lambda _: model, sessions))
        return places[-1]

    yield begin
    for place in places:
        place.end()


def test_session_edits_frames(start: Start) -> None:
    model = Mirror()
    place = start(model)
    client = place.open()
    assert place.catalogue() == {"version": 1, "models": {"gen-2.5": {"ready": True}}, "sessions": 2, "open": 1}
    for number, (width, height, narrow) in enumerate([(16, 8, False), (15, 7, True), (1, 1, False), (640, 360, True)]):
        client.show(picture(number, width, height, 40, narrow))
        assert client.next() == picture(number, width, height, 215, narrow)
    client.wish(8, "winter")
    assert client.next() == {"set": {"number": 8, "engine": "sd-turbo"}}
    client.wish(10, "winter " * 20)
    assert client.next() == {"set": {"number": 10, "engine": "sd-turbo", "notice": "It is long."}}
    client.show(picture(11))
    client.next()
    seen = list(model.edits.queue)
    assert seen == [*((number, "") for number in range(4)), (11, "winter " * 20)]
    client.leave()
    place.becomes(lambda reported: reported["open"] == 0)
    assert b'cutroom_engine_live_pictures_total{model="gen-2.5",outcome="edited"} 5.0' in place.metrics.text()


@pytest.mark.parametrize(
    ("first", "says"),
    [
        (wire.text({"version": 1, "model": "gen-9"}), "does not edit this model live"),
        (wire.text({"version": 2, "model": "gen-2.5"}), "does not understand"),
        (wire.text({"version": 1, "model": "gen-2.5", "seed": -1}), "does not understand"),
        (wire.text({"version": 1, "model": 5}), "does not understand"),
        (wire.picture(picture()), "does not understand"),
        (b"\x09\0\0\0\0\0\0\1x", "does not understand"),
        (b"\x02\0\0\0\xff\xff\xff\xff", "does not understand"),
        (b"\x01\0\0\0\0\0\0\2[]", "does not understand"),
        (b"\x01\0\0\0\0\0\0\2{[", "does not understand"),
    ],
)
def test_invalid_first_messages_start_no_session(shared: Place, first: bytes, says: str) -> None:
    client = LiveClient(shared.port, first=first)
    assert client.status == 422
    assert says in client.rejection["message"]
    assert not client.rejection["retryable"]
    client.leave()


@pytest.mark.parametrize(
    "message",
    [
        b"\x02\0\0\0\0\0\0\x0c" + bytes(12),  # a frame without pixels
        wire.picture(wire.Picture(1, 16, 8, False, bytes(5))),
        b"\x02\0\0\0\x7f\0\0\0",
        b"\x02\1\0\0\0\0\0\x0c",
        b"\x03\0\0\0\0\0\0\x04abcd",
        wire.text({"number": "1", "prompt": "winter"}),
        wire.text({"number": 1}),
        b"\x01\0\0\0\0\1\0\1",
    ],
)
def test_session_ends_for_these_reasons(shared: Place, message: bytes) -> None:
    client = shared.open()
    client.send(message)
    assert client.next() == {
        "error": {
            "code": "invalid_input",
            "message": "The engine does not understand the session.",
            "retryable": False,
        }
    }
    with pytest.raises(EOFError):
        client.next()
    client.leave()


@pytest.fixture(scope="module")
def shared() -> Iterator[Place]:
    place = Place(lambda _: Mirror(), 2)
    place.becomes(lambda reported: reported["models"]["gen-2.5"]["ready"])
    yield place
    place.end()


def test_sessions_are_limited(start: Start) -> None:
    place = start(Mirror(), sessions=1)
    first = place.open()
    second = LiveClient(place.port)
    assert (second.status, second.rejection["retryable"]) == (503, True)
    second.leave()
    first.leave()
    place.open().leave()


def test_only_warm_models_are_served(start: Start) -> None:
    model, release = Mirror(), threading.Event()
    model.on_prompt = lambda _: assert_true(release.wait(PATIENCE))
    place = start(model)
    assert place.catalogue()["models"] == {"gen-2.5": {"ready": False}}
    client = LiveClient(place.port)
    assert (client.status, client.rejection["message"]) == (503, "The engine is still loading.")
    client.leave()
    release.set()
    place.open().leave()
    broken = Mirror()
    broken.on_prompt = fails(ValueError("no such weights"))
    other = start(broken)
    other.becomes(lambda reported: reported["models"] == {})
    rejected = LiveClient(other.port)
    assert rejected.status == 422
    rejected.leave()
    assert not other.live.lost


def assert_true(value: bool) -> None:
    """Fails unless the condition is true."""
    assert value


def fails(error: Exception) -> Callable[[Any], None]:
    """Returns a function that raises the error."""

    def fail(_: Any) -> None:
        raise error

    return fail


def test_newest_picture_is_edited(start: Start) -> None:
    model, release = Mirror(), threading.Event()
    model.on_edit = lambda _: assert_true(release.wait(PATIENCE))
    client = start(model).open()
    client.show(picture(1))
    assert model.edits.get(timeout=PATIENCE)[0] == 1
    for number in range(2, 50):
        client.show(picture(number))
    client.wish(99, "winter")  # its confirmation shows that all earlier messages have been read
    assert client.next() == {"set": {"number": 99, "engine": "sd-turbo"}}
    release.set()
    # Even the first result may be replaced before it is sent, if a newer one is ready.
    while client.next().number != 49:
        pass
    assert model.edits.get(timeout=PATIENCE)[0] == 49
    assert model.edits.empty()
    client.leave()


def test_newest_prompt_is_prepared_during_edits(start: Start) -> None:
    model, release, begun = Mirror(), threading.Event(), threading.Event()
    client = start(model).open()

    def slowly(_: str) -> None:
        begun.set()
        assert release.wait(PATIENCE)

    model.on_prompt = slowly
    client.wish(1, "slow")
    assert begun.wait(PATIENCE)
    for number in range(2, 100):
        client.wish(number, "x" * 4000)
    replaced = [client.next() for _ in range(97)]
    assert [one["set"]["number"] for one in replaced] == list(range(2, 99))
    assert all(one["set"]["error"]["retryable"] for one in replaced)
    client.show(picture(1))
    assert client.next() == picture(1, luma=215)
    release.set()
    assert [client.next()["set"]["number"] for _ in range(2)] == [1, 99]
    client.leave()


def test_disconnecting_client_ends_its_edit(start: Start) -> None:
    model, left = Mirror(), threading.Event()
    place = start(model, sessions=1)

    def endless(check: Check) -> None:
        try:
            while True:
                check()
        finally:
            left.set()

    model.on_edit = endless
    client = place.open()
    client.show(picture(1))
    model.edits.get(timeout=PATIENCE)
    client.send(wire.picture(picture(2))[:100])  # disconnects in the middle of the next frame
    client.leave()
    assert left.wait(PATIENCE)
    model.on_edit = lambda _: None
    after = place.open()
    after.show(picture(3))
    assert after.next() == picture(3, luma=215)
    after.leave()


def test_sessions_take_turns(start: Start) -> None:
    model = Mirror()
    place = start(model)
    greedy, modest = place.open(), place.open()
    gate: queue.Queue[None] = queue.Queue()
    model.on_edit = lambda _: gate.get(timeout=PATIENCE)
    greedy.show(picture(1))
    model.edits.get(timeout=PATIENCE)
    for number in range(2, 5):
        greedy.show(picture(number))
    greedy.wish(7, "x")
    assert greedy.next() == {"set": {"number": 7, "engine": "sd-turbo"}}
    modest.show(picture(100))
    modest.wish(8, "x")
    assert modest.next() == {"set": {"number": 8, "engine": "sd-turbo"}}
    for _ in range(3):
        gate.put(None)
    assert [model.edits.get(timeout=PATIENCE)[0] for _ in range(2)] == [100, 4]
    greedy.leave()
    modest.leave()


@pytest.mark.parametrize(
    ("error", "answer"),
    [
        (invalid_input("It is too dark."), {"refused": ("invalid_input", "It is too dark.")}),
        (MemoryError(), {"refused": ("engine_error", "The edit needs more memory than the engine has.")}),
        (ValueError("a bug"), {"error": ("engine_error", "The engine failed.")}),
    ],
)
def test_picture_errors_are_reported(start: Start, error: Exception, answer: dict[str, Any]) -> None:
    model = Mirror()
    client = start(model).open()
    model.on_edit = fails(error)
    client.show(picture(5))
    (kind, (code, message)), reported = next(iter(answer.items())), client.next()
    wrong = reported[kind].get("error", reported[kind])
    assert (wrong["code"], wrong["message"]) == (code, message)
    if kind == "refused":
        assert reported[kind]["number"] == 5
        model.on_edit = lambda _: None
        client.show(picture(6))
        assert client.next() == picture(6, luma=215)
    client.leave()


def test_lost_device_ends_the_server(start: Start) -> None:
    model = Mirror()
    place = start(model)
    client = place.open()
    model.on_edit = fails(DeviceLost())
    client.show(picture(1))
    assert "error" in client.next()
    client.leave()
    place.end()
    assert place.live.lost


def test_images_are_rejected(start: Start) -> None:
    client = start(Mirror()).open()
    client.send(b"\x03\0\0\0\0\0\0\x0c\0\0\0\1\0\1\0\1abcd")
    reported = client.next()
    assert reported["set"]["error"]["message"] == "The engine does not support an image for this model."
    client.send(b"\x03\0\0\0\0\0\0\x08\0\0\0\2\0\0\0\0")
    assert client.next() == {"set": {"number": 2}}
    client.leave()


def test_shutdown_ends_sessions(start: Start) -> None:
    place = start(Mirror())
    client = place.open()
    place.server.should_exit = True
    reported = client.next()
    assert reported["error"]["message"] == "The engine is stopping."
    with pytest.raises(EOFError):
        client.next()
    client.leave()


def test_messages_may_arrive_in_pieces() -> None:
    sent = [picture(1), {"number": 3, "prompt": "ö"}]
    stream = wire.picture(sent[0]) + wire.text(sent[1])
    for size in (1, 7, len(stream)):
        reader = wire.Reader()
        pieces = (stream[at : at + size] for at in range(0, len(stream), size))
        assert list(itertools.chain.from_iterable(map(reader.feed, pieces))) == sent
