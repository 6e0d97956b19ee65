"""The client of the media service and the gateway."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import httpx

from .errors import check
from .files import Files
from .generated.client import AuthenticatedClient
from .generated.models import Job, Token
from .jobs import Jobs
from .sources import Source
from .transport import Service

#: The default address of `cutroom dev`.
LOCAL = "http://127.0.0.1:8080"


class Cutroom:
    """A client for the media service and the inference gateway. Several threads can use it at the same time.

    Missing arguments are read from the environment variables that the command line also uses: CUTROOM_URL,
    CUTROOM_INFERENCE_URL and CUTROOM_API_KEY.
    """

    def __init__(
        self,
        url: str | None = None,
        api_key: str | None = None,
        *,
        inference_url: str | None = None,
        timeout: float = 120.0,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        """Creates a client.

        A request fails if its connection is silent for `timeout` seconds. `transport` sends the requests.
        """
        self.url = (url or os.environ.get("CUTROOM_URL") or LOCAL).rstrip("/")
        gateway = LOCAL.replace(":8080", ":8081") if self.url == LOCAL else self.url
        self.inference_url = (inference_url or os.environ.get("CUTROOM_INFERENCE_URL") or gateway).rstrip("/")
        key = api_key or os.environ.get("CUTROOM_API_KEY")
        if not key:
            raise ValueError("missing API key: pass api_key or set CUTROOM_API_KEY")

        def client(base_url: str, **options: Any) -> httpx.Client:
            service = Service(base_url, inner=transport, **options)
            return httpx.Client(base_url=base_url, transport=service, timeout=timeout, follow_redirects=True)

        self._http = client(self.url, key=("x-api-key", key), idempotent=True)
        self._gateway = client(self.inference_url, key=("Authorization", f"Bearer {key}"))
        self._plain = client(self.url)
        self.files = Files(self._http, self._plain)
        self.jobs = Jobs(self._http, self.files)
        #: Clients of the media service and the gateway for the calls of `cutroom.generated.api`. They
        #: send the key and retry in the same way as this client.
        self.media = AuthenticatedClient(base_url=self.url, token="").set_httpx_client(self._http)
        self.inference = AuthenticatedClient(base_url=self.inference_url, token="").set_httpx_client(self._gateway)

    def edit(
        self,
        data: Source,
        output: str | os.PathLike[str],
        *,
        model: str,
        on_change: Callable[[Job], None] = lambda _: None,
        **fields: Any,
    ) -> Path:
        """Edits a video or an image and writes the result to a path: submits the edit, waits and downloads.

        `fields` are other arguments of `jobs.submit`, such as `prompt`.
        """
        job = self.jobs.submit(model, data, **fields)
        self.jobs.wait(job.job_id, on_change)
        return self.jobs.download(job.job_id, output)

    def create_token(
        self, *, expires_in: int | None = None, models: Sequence[str] = (), origins: Sequence[str] = ()
    ) -> Token:
        """Creates a client token for a browser or an app.

        The token is valid for `expires_in` seconds (default 60), and only for the given models and origins. An empty
        list allows all.
        """
        wanted = {"expiresIn": expires_in, "allowedModels": list(models), "allowedOrigins": list(origins)}
        body = {name: value for name, value in wanted.items() if value}
        return Token.from_dict(check(self._http.post("/v1/client/tokens", json=body)).json())

    def close(self) -> None:
        """Closes idle connections."""
        for client in (self._http, self._gateway, self._plain):
            client.close()

    def __enter__(self) -> Cutroom:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Cutroom({self.url!r})"
