"""The transport adds the key to requests. It retries a request if a retry can help and is safe."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable

import httpx

from .errors import retry_after

#: The maximum number of attempts for a request.
TRIES = 4
#: The pause before the first retry, in seconds. Each later pause is twice as long.
BACKOFF = 0.5
#: The longest pause, in seconds. If the service asks for a longer one, the call fails with the service's error.
LONGEST = 30.0

IDEMPOTENCY_KEY = "Idempotency-Key"


class Service(httpx.BaseTransport):
    """Sends requests to one service.

    The key is sent only to the service's origin, because a redirect may lead to a signed URL elsewhere. If
    `idempotent` is set, requests that create something carry an Idempotency-Key, so that a retry does not create it
    twice.
    """

    def __init__(
        self,
        base_url: str,
        *,
        key: tuple[str, str] | None = None,
        idempotent: bool = False,
        inner: httpx.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._origin = origin(httpx.URL(base_url))
        self._key = key
        self._idempotent = idempotent
        self._inner = inner or httpx.HTTPTransport()
        self._sleep = sleep

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if origin(request.url) == self._origin:
            request = self._own(request)
        for left in range(TRIES - 1, -1, -1):
            pause = min(BACKOFF * 2 ** (TRIES - 1 - left), LONGEST)
            try:
                response = self._inner.handle_request(request)
            except httpx.TransportError as error:
                # If the connection could not be opened, nothing was sent, so a retry is safe.
                if not left or not (repeatable(request) or isinstance(error, httpx.ConnectError)):
                    raise
            else:
                if not left or not worthwhile(request, response):
                    return response
                pause = max(pause, retry_after(response))
                response.close()
            self._sleep(pause)
        raise AssertionError("unreachable")

    def _own(self, request: httpx.Request) -> httpx.Request:
        """Returns a copy of the request that carries the key. The original stays without it, so that a redirect does
        not send the key."""
        headers = request.headers.copy()
        if self._key:
            headers[self._key[0]] = self._key[1]
        if self._idempotent and request.method == "POST":
            headers.setdefault(IDEMPOTENCY_KEY, str(uuid.uuid4()))
        return httpx.Request(
            request.method, request.url, headers=headers, stream=request.stream, extensions=request.extensions
        )

    def close(self) -> None:
        self._inner.close()


def origin(url: httpx.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port


def repeatable(request: httpx.Request) -> bool:
    """Reports whether the service may receive a request twice without harm."""
    return request.method != "POST" or IDEMPOTENCY_KEY in request.headers


def worthwhile(request: httpx.Request, response: httpx.Response) -> bool:
    """Reports whether a request that received this response should be retried."""
    wait = retry_after(response)
    if wait > LONGEST:
        return False
    if response.status_code == httpx.codes.TOO_MANY_REQUESTS:
        return True  # the service has not processed the request
    if response.status_code == httpx.codes.CONFLICT:
        return wait > 0 and IDEMPOTENCY_KEY in request.headers  # an earlier attempt of it is still running
    return response.status_code in (502, 503, 504) and repeatable(request)
