"""A client for live sessions. It sends and receives at the same time."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from typing import Any

from cutroom_engine import live_wire as wire

_PATIENCE = 120.0


class LiveClient:
    """A live session. next reads from the response."""

    def __init__(self, port: int, model: str = "gen-2.5", first: bytes | None = None) -> None:
        """If first is given, it is sent in place of a valid first message."""
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=_PATIENCE)
        self._answer = self._socket.makefile("rb")
        head = f"POST {wire.PATH} HTTP/1.1\r\nHost: engine\r\nTransfer-Encoding: chunked\r\n\r\n"
        self._socket.sendall(head.encode())
        begin = {"version": wire.VERSION, "model": model, "seed": 7}
        self.send(wire.text(begin) if first is None else first)
        self.status = int(self._answer.readline().split()[1])
        headers = dict(line.split(b": ") for line in iter(self._answer.readline, b"\r\n"))
        self._messages = self._read()
        self.rejection: dict[str, Any] = {}
        if self.status != 200:
            self.rejection = json.loads(self._answer.read(int(headers[b"content-length"])))["error"]

    def send(self, message: bytes) -> None:
        self._socket.sendall(b"%x\r\n%s\r\n" % (len(message), message))

    def show(self, picture: wire.Picture) -> None:
        self.send(wire.picture(picture))

    def wish(self, number: int, prompt: str) -> None:
        self.send(wire.text({"number": number, "prompt": prompt}))

    def next(self) -> wire.Message:
        """Returns the next message. Raises EOFError at the end of the response."""
        for message in self._messages:
            return message
        raise EOFError

    def leave(self) -> None:
        """Closes the connection without ending the session."""
        self._answer.close()
        self._socket.close()

    def _read(self) -> Iterator[wire.Message]:
        reader = wire.Reader()
        while (length := int(self._answer.readline() or b"0", 16)) > 0:
            yield from reader.feed(self._answer.read(length))
            self._answer.readline()


def picture(number: int = 1, width: int = 16, height: int = 8, luma: int = 40, narrow: bool = False) -> wire.Picture:
    """Returns a picture with a single color."""
    size, chroma = wire.planes_of(width, height)
    return wire.Picture(number, width, height, narrow, bytes([luma]) * size + bytes([128]) * 2 * chroma)
