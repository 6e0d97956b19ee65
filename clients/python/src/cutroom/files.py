"""Files stored by the service, so that many jobs can use them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal
from urllib.parse import quote

import httpx

from .errors import check
from .generated.models import Announced, CredentialsReport, File
from .sources import Content, Source, content_of

#: Files larger than this size, in bytes, are uploaded directly to a signed URL.
LARGE = 64 << 20

#: How long the service keeps a file: a number of seconds, or until it is deleted.
TTL = int | Literal["persistent"]


class Files:
    """The account's stored files."""

    def __init__(self, http: httpx.Client, plain: httpx.Client) -> None:
        self._http = http
        self._plain = plain

    def upload(self, source: Source, *, ttl: TTL | None = None, filename: str | None = None) -> File:
        """Stores a file and returns its reference. The file is streamed, so it does not have to fit into memory.

        Files that are large, or too large for an upload form of this service, are uploaded to a signed URL.
        """
        content = content_of(source)
        if isinstance(content, str):
            return self.get(content)
        if filename:
            content = Content(filename, content.size, content.open)
        if content.size > LARGE:
            return self.announce(content, ttl)
        with content.open() as file:
            form: list[tuple[str, Any]] = [("ttl_seconds", (None, str(ttl)))] if ttl is not None else []
            form.append(("file", (content.name, file, content.mime_type)))
            response = self._http.post("/v1/files", files=form)
        if response.status_code == httpx.codes.REQUEST_ENTITY_TOO_LARGE:
            return self.announce(content, ttl)
        return File.from_dict(check(response).json())

    def announce(self, content: Content, ttl: TTL | None = None) -> File:
        """Stores a file by uploading it to a signed URL."""
        wanted: dict[str, Any] = {
            "filename": content.name,
            "mime_type": content.mime_type,
            "size_bytes": content.size,
            "md5": content.md5(),
        }
        if ttl is not None:
            wanted["ttl_seconds"] = ttl
        announced = Announced.from_dict(check(self._http.post("/v1/files", json=wanted)).json())
        upload = announced.upload
        # The URL contains a signature, so the request does not need the key.
        headers = {**upload.headers.to_dict(), "Content-Length": str(content.size)}
        check(self._plain.put(upload.url, headers=headers, content=content))
        return self.get(announced.id)

    def get(self, file_id: str) -> File:
        return File.from_dict(check(self._http.get(_path(file_id))).json())

    def delete(self, file_id: str) -> None:
        check(self._http.delete(_path(file_id)))

    def thumbnail(self, file_id: str) -> bytes:
        """Returns a small JPEG of an image or a video.

        Raises APIError with status 404 if the file has no thumbnail. In AWS, a file gets its thumbnail when a job
        first uses it.
        """
        return check(self._http.get(f"/v1/uploads/{quote(file_id, safe='')}/thumbnail")).content

    def credentials(self, file_id: str) -> CredentialsReport:
        """Verifies the Content Credentials of an image or a video. If the file was changed, the report says so.

        Raises APIError with status 404 if the service lacks the library for Content Credentials.
        """
        answer = check(self._http.get(f"/v1/uploads/{quote(file_id, safe='')}/credentials"))
        return CredentialsReport.from_dict(answer.json())

    def list(self) -> Iterator[File]:
        """Yields the files, newest first. Further pages are requested as needed."""
        for item in pages(self._http, "/v1/files", "files", {}):
            yield File.from_dict(item)


def _path(file_id: str) -> str:
    return f"/v1/files/{quote(file_id, safe='')}"


def pages(http: httpx.Client, path: str, items: str, query: dict[str, str]) -> Iterator[dict[str, Any]]:
    """Yields the items of a paged list."""
    query = dict(query)
    while True:
        page = check(http.get(path, params=query)).json()
        yield from page[items]
        # A page may be empty even though more pages follow.
        if page["next_cursor"] is None:
            return
        query["cursor"] = page["next_cursor"]
