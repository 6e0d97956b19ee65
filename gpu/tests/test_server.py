"""Tests the server over HTTP, with models that only change colors."""

from __future__ import annotations

import asyncio
import itertools
import json
import queue
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest
import uvicorn

from cutroom_engine import runs
from cutroom_engine.metrics import Metrics
from cutroom_engine.model_map import ModelMap
from cutroom_engine.pipeline import DeviceLost, Pipeline
from cutroom_engine.residents import Residents
from cutroom_engine.runs import Runner
from cutroom_engine.server import Server, create_app

from .conftest import Ask, Clip, Inverter, model_map, no_live
from .test_runs import Endless, Failing

Serve = Callable[..., httpx2.Client]


@pytest.fixture
def servers() -> list[Server]:
    """Returns the list of servers that the test has started."""
    return []


@pytest.fixture
def serve(servers: list[Server]) -> Iterator[Serve]:
    """Returns a function that starts servers, each on its own port."""
    ends: list[Callable[[], None]] = []

    def start(
        model: Callable[[], Pipeline] = Inverter,
        heartbeat: float | None = 60,
        models: ModelMap | None = None,
        missing: Callable[[Any], list[Path]] = lambda _: [],
        fetch: str = "",
        **rows: Any,
    ) -> httpx2.Client:
        models = models or model_map(**rows)
        metrics = Metrics()
        residents = Residents(models.pipelines, None, lambda _: model())
        runner = Runner(models, residents, metrics, missing=missing)
        live, more = no_live(), {} if heartbeat is None else {"heartbeat": heartbeat}
        app = create_app(runner, metrics, live, fetch=fetch, **more)
        server = Server(uvicorn.Config(app, log_config=None, timeout_graceful_shutdown=1), runner, live)
        servers.append(server)
        listener = socket.create_server(("127.0.0.1", 0))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        client = httpx2.Client(base_url=f"http://127.0.0.1:{listener.getsockname()[1]}", timeout=120)

        def end() -> None:
            client.close()
            server.should_exit = True
            thread.join()

        ends.append(end)
        return client

    yield start
    for end in ends:
        end()


def lines_of(client: httpx2.Client, body: Any) -> list[dict[str, Any]]:
    with client.stream("POST", "/v1/runs", json=body) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"] == "application/x-ndjson"
        return [json.loads(line) for line in answer.iter_lines()]


def test_run_sends_progress_and_result(serve: Serve, clip: Clip, ask: Ask) -> None:
    request = ask(clip())
    lines = lines_of(serve(), request.model_dump())
    assert lines[0] == {"progress": 0.0, "stage": "wait"}
    assert lines[-1]["result"]["bytes"] == Path(request.output).stat().st_size
    assert all("progress" in line for line in lines[:-1])


def test_health_lists_resident_pipelines(serve: Serve, clip: Clip, ask: Ask) -> None:
    client = serve()
    assert client.get("/healthz").json() == {"status": "ok", "resident": [], "loaded": []}
    lines_of(client, ask(clip()).model_dump())
    assert client.get("/healthz").json() == {"status": "ok", "resident": ["edit"], "loaded": ["gen-2.5"]}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"seed": -1}, "body.seed"),
        ({"kind": "magic"}, "body.kind"),
        ({"width": 0}, "body.width"),
        ({"width": 10**9}, "body.width"),
        ({"data": None}, "body"),
        ({"fps": 0}, "body"),
        ({"duration": "long"}, "body.duration"),
        ({"folder": None}, "body.folder"),
        ({"model": "gen-9"}, "does not serve gen-9"),
    ],
)
def test_invalid_request_is_a_protocol_error(
    serve: Serve, clip: Clip, ask: Ask, change: dict[str, Any], says: str
) -> None:
    answer = serve().post("/v1/runs", json=ask(clip()).model_dump() | change)
    assert answer.status_code == 422
    error = answer.json()["error"]
    assert says in error["message"]
    assert not error["retryable"]


def test_invalid_json_is_a_protocol_error(serve: Serve) -> None:
    answer = serve().post("/v1/runs", content=b"{", headers={"content-type": "application/json"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "engine_error")


def test_fields_of_a_later_version_are_ignored(serve: Serve, clip: Clip, ask: Ask) -> None:
    assert "result" in lines_of(serve(), ask(clip()).model_dump() | {"frobnicate": True})[-1]


def test_disconnecting_caller_cancels_run(serve: Serve, clip: Clip, ask: Ask) -> None:
    stepped: queue.Queue[None] = queue.Queue()
    models = iter([Endless(stepped), Inverter()])
    client = serve(lambda: next(models))
    with client.stream("POST", "/v1/runs", json=ask(clip()).model_dump()) as answer:
        # Keep a reference to the iterator: without one, Python would close the connection.
        lines = answer.iter_lines()
        next(lines)
        stepped.get(timeout=120)
    # The next run begins only after the first has ended. It uses another pipeline, so that the model that never ends
    # is evicted.
    request = ask(model="gen-pro-t2v", kind="text-to-video")
    assert "result" in lines_of(client, request.model_dump())[-1]


def test_concurrent_calls_are_serialized(serve: Serve, clip: Clip, ask: Ask) -> None:
    client = serve(heartbeat=0.01)
    requests = [ask(clip()) for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda request: lines_of(client, request.model_dump()), requests))
    assert all("result" in lines[-1] for lines in answers)
    assert len({Path(request.output).read_bytes() for request in requests}) == 1


def test_waiting_caller_gets_lines(serve: Serve, clip: Clip, ask: Ask) -> None:
    stepped: queue.Queue[None] = queue.Queue()
    client = serve(lambda: Endless(stepped), heartbeat=0.01)
    with client.stream("POST", "/v1/runs", json=ask(clip()).model_dump()) as first:
        held = first.iter_lines()  # keeps the connection open
        next(held)
        stepped.get(timeout=120)
        with client.stream("POST", "/v1/runs", json=ask(clip()).model_dump()) as second:
            lines = second.iter_lines()
            assert [json.loads(next(lines)) for _ in range(3)] == [{"progress": 0.0, "stage": "wait"}] * 3
        held.close()


def test_quiet_run_keeps_sending_lines(serve: Serve, clip: Clip, ask: Ask) -> None:
    """A step, or a call of the VAE, may take longer than a caller waits for a line."""
    stepped: queue.Queue[None] = queue.Queue()
    last: queue.Queue[None] = queue.Queue()
    client = serve(lambda: Endless(stepped, last), heartbeat=0.01)
    with client.stream("POST", "/v1/runs", json=ask(clip()).model_dump()) as answer:
        lines = answer.iter_lines()
        stepped.get(timeout=120)
        heard = [json.loads(line) for line in itertools.islice(lines, 20)]
        lines.close()
    assert {line["stage"] for line in heard[-10:]} == {"denoise"}
    last.put(None)


def test_line_is_sent_every_ten_seconds(serve: Serve, clip: Clip, ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    """In every stage, lines keep coming: after two minutes without a line, the worker treats the server as hung."""
    waited: list[float | None] = []
    known = asyncio.wait_for

    async def wait_for(awaited: Any, timeout: float | None) -> Any:
        waited.append(timeout)
        return await known(awaited, None if timeout is None else 0.01)

    monkeypatch.setattr(asyncio, "wait_for", wait_for)
    stepped: queue.Queue[None] = queue.Queue()
    last: queue.Queue[None] = queue.Queue()
    client = serve(lambda: Endless(stepped, last), heartbeat=None)
    with client.stream("POST", "/v1/runs", json=ask(clip()).model_dump()) as answer:
        lines = answer.iter_lines()
        stepped.get(timeout=120)
        for _ in itertools.islice(lines, 30):
            pass
        lines.close()
    assert set(waited) == {10.0}
    last.put(None)


def test_stopping_server_responds_to_its_runs(serve: Serve, servers: list[Server], clip: Clip, ask: Ask) -> None:
    stepped: queue.Queue[None] = queue.Queue()
    client = serve(lambda: Endless(stepped))
    with client.stream("POST", "/v1/runs", json=ask(clip()).model_dump()) as answer:
        lines = answer.iter_lines()
        next(lines)
        stepped.get(timeout=120)
        servers[0].should_exit = True
        *_, last = lines
    error = json.loads(last)["error"]
    assert ("engine is stopping" in error["message"], error["retryable"]) == (True, True)


def test_server_that_has_lost_its_device_ends(serve: Serve, clip: Clip, ask: Ask) -> None:
    client = serve(lambda: Failing([DeviceLost("CUDA error: an illegal memory access was encountered")]))
    error = lines_of(client, ask(clip()).model_dump())[-1]["error"]
    assert (error["code"], error["retryable"]) == ("engine_error", True)
    until_gone(client)


def test_server_exits_if_a_run_does_not_end(
    serve: Serve, clip: Clip, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "STUCK_AFTER", 0.1)
    stepped: queue.Queue[None] = queue.Queue()
    last: queue.Queue[None] = queue.Queue()
    client = serve(lambda: Endless(stepped, last))
    with client.stream("POST", "/v1/runs", json=ask(clip()).model_dump()) as answer:
        lines = answer.iter_lines()  # keeps the connection open
        next(lines)
        stepped.get(timeout=120)
    lines.close()
    until_gone(client)
    last.put(None)


def test_server_exits_if_a_run_hangs(serve: Serve, clip: Clip, ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "HUNG_AFTER", 0.5)
    stepped: queue.Queue[None] = queue.Queue()
    last: queue.Queue[None] = queue.Queue()
    client = serve(lambda: Endless(stepped, last), heartbeat=0.01)
    lines = lines_of(client, ask(clip()).model_dump())
    assert lines[-1]["error"]["retryable"]
    until_gone(client)
    last.put(None)


def until_gone(client: httpx2.Client) -> None:
    """Waits until no server listens on the port anymore."""
    for _ in range(6000):
        try:
            client.get("/healthz")
        except httpx2.TransportError:
            return
        time.sleep(0.1)
    raise AssertionError("the server keeps listening")


def test_estimates_are_returned(serve: Serve) -> None:
    client = serve(teraflops=400, shape="wan2.2-5b")
    edit = {"model": "gen-2.5", "kind": "edit", "width": 1280, "height": 720, "fps": 20, "lengths": [1, 5, 300]}
    asked = [
        edit,
        edit | {"reference": True},
        edit
        | {
            "model": "gen-pro-t2v",
            "kind": "text-to-video",
            "reference": True,
        },  # the pipeline does not accept a reference
        edit | {"model": "gen-9"},
        {"model": "gen-image-2", "kind": "image", "width": 1280, "height": 704, "lengths": [0]},
    ]
    answer = client.post("/v1/estimates", json={"edits": asked})
    plain, referred, impossible, unknown, image = answer.json()["estimates"]
    assert sorted(plain["seconds"]) == plain["seconds"]
    assert plain["seconds"][2] > 40 * plain["seconds"][1]
    assert (len(referred["seconds"]), len(image["seconds"])) == (3, 1)
    assert (impossible, unknown) == (None, None)
    assert client.post("/v1/estimates", json={"edits": [edit | {"lengths": [-1]}]}).status_code == 422


def test_unknown_card_has_no_estimate(serve: Serve) -> None:
    edit = {"model": "gen-2.5", "kind": "edit", "width": 1280, "height": 720, "fps": 20, "lengths": [1]}
    assert serve().post("/v1/estimates", json={"edits": [edit]}).json() == {"estimates": [None]}


def test_metrics_count_runs(serve: Serve, clip: Clip, ask: Ask) -> None:
    client = serve()
    lines_of(client, ask(clip()).model_dump())
    answer = client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    assert 'cutroom_engine_runs_total{model="gen-2.5",outcome="completed"} 1.0' in answer.text
