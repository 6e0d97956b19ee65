"""Serves live sessions over HTTP. A session is one request, whose body and response are streamed at the same time."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from . import live_wire as wire
from .live import Live, Session
from .protocol import RunError, invalid_input

_logger = logging.getLogger(__name__)

# How long a client may take to send its first message, and how long it may be silent later, in seconds. Clients end
# sessions without frames sooner.
_FIRST = 10.0
_SILENCE = 300.0

# How many texts may wait for a client that does not read them.
_UNREAD = 64

_NONSENSE = invalid_input("The engine does not understand the session.")


class LiveEndpoint:
    """Handles the requests that open sessions. It is a plain ASGI application, because FastAPI's handlers cannot read
    the body while they send the response."""

    def __init__(self, live: Live) -> None:
        self._live = live

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        stream = _Stream(receive)
        outgoing = _Outgoing()
        try:
            model, seed = _begin(await asyncio.wait_for(stream.next(), _FIRST))
            session = self._live.open(model, seed, outgoing.notify)
        except (wire.WireError, TimeoutError):
            await JSONResponse(_NONSENSE.line(), 422)(scope, receive, send)
            return
        except RunError as error:
            await JSONResponse(error.line(), 503 if error.retryable else 422)(scope, receive, send)
            return
        except _Gone:
            return
        try:
            await self._serve(session, stream, outgoing, send)
        finally:
            self._live.close(session)

    async def _serve(self, session: Session, stream: _Stream, outgoing: _Outgoing, send: Send) -> None:
        headers = [(b"content-type", wire.CONTENT_TYPE.encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        reading = asyncio.create_task(self._read(session, stream, outgoing))
        try:
            while not outgoing.ended:
                for message in await outgoing.next():
                    await send({"type": "http.response.body", "body": message, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            reading.cancel()
            with suppress(asyncio.CancelledError):
                await reading

    async def _read(self, session: Session, stream: _Stream, outgoing: _Outgoing) -> None:
        """Reads messages until the client disconnects. It never waits for the device, so it always has the newest
        frame."""
        try:
            while True:
                self._live.take(session, await asyncio.wait_for(stream.next(), _SILENCE))
        except _Gone:
            outgoing.end()
        except (wire.WireError, TimeoutError) as error:
            _logger.warning("a live session ended", extra={"model": session.model, "reason": str(error)})
            outgoing.notify(_NONSENSE.line())
        except asyncio.CancelledError:
            raise
        except Exception:
            _logger.exception("a live session ended", extra={"model": session.model})
            outgoing.end()


class _Gone(Exception):
    """Raised when the client has disconnected."""


class _Stream:
    """The messages in a request's body."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._reader = wire.Reader()
        self._read: deque[wire.Message] = deque()

    async def next(self) -> wire.Message:
        """Waits for the next message. Raises WireError, or _Gone when the client has disconnected."""
        while not self._read:
            event = await self._receive()
            if event["type"] != "http.request":
                raise _Gone
            self._read.extend(self._reader.feed(event.get("body", b"")))
            if not event.get("more_body", False) and not self._read:
                raise _Gone
        return self._read.popleft()


class _Outgoing:
    """The messages to send. Texts are sent in order. Of several waiting frames, only the newest is sent, so a slow
    reader gets fewer frames. Any thread may call notify."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._there = asyncio.Event()
        self._texts: list[bytes] = []
        self._picture: wire.Picture | None = None
        # Whether the last message has been returned.
        self.ended = False
        self._last = False

    def notify(self, message: Mapping[str, Any] | wire.Picture) -> None:
        """Queues a message. A message with an error is the last one."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._put, message)

    def end(self) -> None:
        """Ends the response after the waiting messages."""
        self._last = True
        self._there.set()

    async def next(self) -> list[bytes]:
        """Waits for messages and returns them encoded."""
        await self._there.wait()
        self._there.clear()
        taken, self._texts = self._texts, []
        if self._picture is not None:
            taken.append(wire.picture(self._picture))
            self._picture = None
        self.ended = self._last
        return taken

    def _put(self, message: Mapping[str, Any] | wire.Picture) -> None:
        if self._last:
            return
        if isinstance(message, wire.Picture):
            self._picture = message
        else:
            self._texts.append(wire.text(message))
        self._last = "error" in message if isinstance(message, Mapping) else False
        self._last = self._last or len(self._texts) > _UNREAD
        self._there.set()


def _begin(message: wire.Message) -> tuple[str, int]:
    """Returns the model and the seed that the client's first message names."""
    if not isinstance(message, dict) or message.get("version") != wire.VERSION:
        raise wire.WireError("an unknown or missing version")
    model, seed = message.get("model"), message.get("seed", 0)
    if not isinstance(model, str) or not isinstance(seed, int) or not 0 <= seed < 2**32:
        raise wire.WireError("the first message names no model")
    return model, seed
