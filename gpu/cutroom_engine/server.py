"""The engine server's HTTP interface."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

import uvicorn
from fastapi import FastAPI, Header, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response, StreamingResponse
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.routing import Route

from .live import Live
from .live_http import LiveEndpoint
from .live_wire import PATH
from .metrics import Metrics
from .protocol import EstimatesRequest, RunError, RunRequest
from .runs import Run, Runner

# The maximum number of seconds between two lines that report a run. Otherwise a caller would hear nothing
# while the server loads a pipeline, runs the VAE or computes a step of a large model. The runner detects a run that
# hangs; silence shows that the whole process hangs.
_HEARTBEAT = 10.0


class Server(uvicorn.Server):
    """Serves an application.

    A stop signal ends all runs immediately, so that their callers can move them to another server. If no more runs
    are possible, the server stops, because a supervisor restarts it sooner than a health check would.
    """

    def __init__(self, config: uvicorn.Config, runner: Runner, live: Live) -> None:
        super().__init__(config)
        self._runner = runner
        self._live = live

    async def on_tick(self, counter: int) -> bool:
        """Overrides uvicorn.Server, which calls this ten times a second to find out whether to stop."""
        return await super().on_tick(counter) or self._runner.lost or self._live.lost

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Overrides uvicorn.Server, which waits here for the running responses."""
        self._runner.drain()
        self._live.drain()
        await super().shutdown(sockets)


def create_app(
    runner: Runner, metrics: Metrics, live: Live, *, heartbeat: float = _HEARTBEAT, fetch: str = ""
) -> FastAPI:
    """Returns the application. The runner and the live sessions run as long as the application does. fetch is the
    command that fetches missing weights."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        runner.start()
        live.start()
        yield
        await asyncio.to_thread(live.stop)
        await asyncio.to_thread(runner.stop)

    app = FastAPI(title="Cutroom engine server", lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None)

    @app.get("/healthz")
    async def healthz() -> Response:
        status = runner.health()
        if status == "ok" and live.lost:
            status = "device lost"
        health: dict[str, object] = {"status": status, "resident": runner.resident(), "loaded": runner.loaded()}
        if missing := await asyncio.to_thread(runner.missing):
            health |= {"missing": missing, "fetch": fetch}
        return JSONResponse(health, 200 if status == "ok" else 503)

    @app.get("/metrics")
    async def scrape() -> Response:
        return Response(metrics.text(), media_type=CONTENT_TYPE_LATEST)

    @app.post("/v1/runs")
    async def runs(request: RunRequest, traceparent: Annotated[str, Header()] = "") -> Response:
        lines: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        loop = asyncio.get_running_loop()

        def notify(line: dict[str, Any]) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(lines.put_nowait, line)

        try:
            run = runner.submit(request, notify, traceparent)
        except RunError as error:
            return JSONResponse(error.line(), 503 if error.retryable else 422)
        return StreamingResponse(_answer(run, lines, heartbeat), media_type="application/x-ndjson")

    @app.post("/v1/estimates")
    async def estimates(request: EstimatesRequest) -> Response:
        return JSONResponse({"estimates": [runner.estimate(edit) for edit in request.edits]})

    @app.get(PATH)
    async def live_models() -> Response:
        return JSONResponse(live.catalogue())

    app.router.routes.append(Route(PATH, LiveEndpoint(live), methods=["POST"]))

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> Response:
        where = ".".join(str(part) for part in error.errors()[0]["loc"])
        return JSONResponse(
            RunError("engine_error", f"The engine does not understand the request: {where}.").line(), 422
        )

    return app


async def _answer(run: Run, lines: asyncio.Queue[dict[str, Any]], heartbeat: float) -> AsyncIterator[bytes]:
    """Yields a run's lines until it ends. If the caller disconnects, the run is cancelled."""
    try:
        yield _encode({"progress": 0.0, "stage": "wait"})
        while True:
            try:
                line = await asyncio.wait_for(lines.get(), heartbeat)
            except TimeoutError:
                line = run.line()
            yield _encode(line)
            if "result" in line or "error" in line:
                return
    finally:
        run.cancel()


def _encode(line: dict[str, Any]) -> bytes:
    return json.dumps(line, separators=(",", ":")).encode() + b"\n"
