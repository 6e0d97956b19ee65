"""Jobs: edits that the service performs in the background."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

import httpx

from . import events
from .errors import APIError, CutroomError, JobFailed, check
from .files import LARGE, Files, pages
from .generated.models import CredentialsReport, Job, JobCreated, JobStatus, Share
from .sources import Content, Source, content_of
from .transport import IDEMPOTENCY_KEY

#: After this many consecutive failures without progress, an event stream or a download is given up.
_BREAKS = 3
#: The pause before an event stream or a download is opened again, and the shortest and longest pause between polls,
#: in seconds.
_RECONNECT, _SHORTEST, _LONGEST = 1.0, 0.5, 3.0
#: How long the service keeps a file that was stored for one job, in seconds.
_INPUT_TTL = 3600


class Jobs:
    """The account's jobs."""

    def __init__(self, http: httpx.Client, files: Files, sleep: Callable[[float], None] = time.sleep) -> None:
        self._http = http
        self._files = files
        self._sleep = sleep

    def submit(
        self,
        model: str,
        data: Source | None = None,
        *,
        prompt: str | None = None,
        reference_image: Source | None = None,
        seed: int | None = None,
        resolution: str | None = None,
        orientation: str | None = None,
        enhance_prompt: bool | None = None,
        self_anchor: bool | None = None,
        webhook_url: str | None = None,
        webhook_events: str | None = None,
        start_within: int | None = None,
        result_ttl: int | None = None,
        priority: str | None = None,
        idempotency_key: str | None = None,
    ) -> JobCreated:
        """Submits an edit as a job. `data` is the video or image to edit, or None for text to video.

        docs/contract/media.md#forms lists each model's other fields. Inputs are streamed, and large ones are stored
        as files first. No second job is created when a broken connection is retried, or when the call is repeated
        with the same `idempotency_key`.
        """
        texts = {
            "prompt": prompt,
            "seed": seed,
            "resolution": resolution,
            "orientation": orientation,
            "enhance_prompt": enhance_prompt,
            "self_anchor": self_anchor,
            "webhook_url": webhook_url,
            "webhook_events": webhook_events,
            "start_within": start_within,
            "result_ttl": result_ttl,
            "priority": priority,
        }
        form = {name: _text(value) for name, value in texts.items() if value is not None}
        given = {"reference_image": reference_image, "data": data}
        inputs = {name: content_of(source) for name, source in given.items() if source is not None}
        inputs = {name: self._stored(each) if _is_large(each) else each for name, each in inputs.items()}
        response = self._post(model, form, inputs, idempotency_key)
        if response.status_code == httpx.codes.REQUEST_ENTITY_TOO_LARGE:
            inputs = {name: self._stored(each) for name, each in inputs.items()}
            response = self._post(model, form, inputs, idempotency_key)
        return JobCreated.from_dict(check(response).json())

    def _stored(self, content: Content | str) -> str:
        """Stores the content as a file if it is not stored yet, and returns the file's id."""
        return content if isinstance(content, str) else self._files.announce(content, _INPUT_TTL).id

    def _post(
        self, model: str, form: dict[str, str], inputs: dict[str, Content | str], key: str | None
    ) -> httpx.Response:
        # Small form fields precede the files, so that the service can reject an invalid request early.
        parts: list[tuple[str, Any]] = [(name, (None, value)) for name, value in form.items()]
        with ExitStack() as opened:
            for name, each in inputs.items():
                if isinstance(each, str):
                    parts.append((name, (None, each)))
                else:
                    parts.append((name, (each.name, opened.enter_context(each.open()), each.mime_type)))
            headers = {IDEMPOTENCY_KEY: key} if key else {}
            return self._http.post(f"/v1/jobs/{quote(model, safe='')}", files=parts, headers=headers)

    def get(self, job_id: str) -> Job:
        return Job.from_dict(check(self._http.get(_path(job_id))).json())

    def cancel(self, job_id: str) -> Job:
        """Cancels a job that has not ended."""
        return Job.from_dict(check(self._http.delete(_path(job_id))).json())

    def delete(self, job_id: str) -> None:
        """Deletes a job that has ended, with its result and thumbnails. Requires a permanent key."""
        check(self._http.delete(_path(job_id), params={"purge": "true"}))

    def share(self, job_id: str, *, expires_in: int | None = None) -> Share:
        """Creates a link to the result of a completed job, which works without a key. Requires a permanent key.

        The link expires after `expires_in` seconds, or with the result.
        """
        wanted = {} if expires_in is None else {"expires_in": expires_in}
        return Share.from_dict(check(self._http.post(f"{_path(job_id)}/shares", json=wanted)).json())

    def thumbnail(
        self,
        job_id: str,
        of: Literal["result", "input"] = "result",
        *,
        size: Literal["thumbnail", "poster"] = "thumbnail",
    ) -> bytes:
        """Returns a small JPEG of a completed job's result or input.

        The size "poster" returns a larger picture of a video result.
        """
        return check(self._http.get(f"{_path(job_id)}/thumbnail", params={"of": of, "size": size})).content

    def preview(self, job_id: str) -> bytes:
        """Returns a small JPEG preview of a running job's result. Some engines make no previews."""
        return check(self._http.get(f"{_path(job_id)}/preview")).content

    def credentials(self, job_id: str) -> CredentialsReport:
        """Verifies the Content Credentials of a completed job's result. If the result was changed, the report says
        so.

        Raises APIError with status 404 if the service lacks the library for Content Credentials.
        """
        return CredentialsReport.from_dict(check(self._http.get(f"{_path(job_id)}/credentials")).json())

    def list(
        self, *, status: JobStatus | str | None = None, model: str | None = None, search: str | None = None
    ) -> Iterator[Job]:
        """Yields the jobs of the last 7 days, newest first. Further pages are requested as needed.

        `search` contains words of the prompt, of an input's name or of the job's id.
        """
        wanted = {"status": status, "model": model, "q": search}
        query = {name: str(value) for name, value in wanted.items() if value}
        for item in pages(self._http, "/v1/jobs", "jobs", query):
            yield Job.from_dict(item)

    def events(self, job_id: str) -> Iterator[Job]:
        """Yields the job, and again after each change, until the job or the stream ends."""
        with self._http.stream("GET", f"{_path(job_id)}/events", headers={"Accept": "text/event-stream"}) as response:
            for name, data in events.read(check(response).iter_lines()):
                if name == "job":
                    yield Job.from_dict(json.loads(data))

    def wait(self, job_id: str, on_change: Callable[[Job], None] = lambda _: None) -> Job:
        """Waits for a job to complete and returns it. Follows the job's events, or polls if the service has no
        events.

        Raises JobFailed if the job fails.
        """
        for job in self._changes(job_id):
            on_change(job)
            if job.status == JobStatus.FAILED:
                raise JobFailed(job)
            if job.status == JobStatus.COMPLETED:
                return job
        raise AssertionError("unreachable")

    def _changes(self, job_id: str) -> Iterator[Job]:
        broken = 0
        while broken < _BREAKS:
            try:
                for job in self.events(job_id):
                    broken = 0
                    yield job
            except httpx.TransportError:
                pass
            except APIError:
                break  # the service has no events, or no such job: polling finds out
            broken += 1
            self._sleep(_RECONNECT)
        pause = _SHORTEST
        while True:
            yield self.get(job_id)
            self._sleep(pause)
            pause = min(pause * 1.5, _LONGEST)

    def download(self, job_id: str, path: str | os.PathLike[str]) -> Path:
        """Writes the result of a completed job to a path and returns the path.

        An incomplete download is kept in the same folder. A later call resumes it, because a job's result never
        changes.
        """
        target = Path(path)
        partial = target.with_name(f"{target.name}.{quote(job_id, safe='')}.part")
        broken = 0
        with partial.open("ab") as out:
            while True:
                before = out.tell()
                try:
                    self._rest(job_id, out)
                    break
                except httpx.TransportError:
                    broken = 0 if out.tell() > before else broken + 1
                    if broken == _BREAKS:
                        raise
                    self._sleep(_RECONNECT)
                except APIError:
                    out.close()
                    partial.unlink()  # the download cannot be resumed
                    raise
        os.replace(partial, target)
        return target

    def _rest(self, job_id: str, out: Any) -> None:
        """Downloads the missing bytes and writes them as they arrive."""
        offset = out.tell()
        headers = {"Accept-Encoding": "identity"}
        if offset:
            headers["Range"] = f"bytes={offset}-"
        with self._http.stream("GET", f"{_path(job_id)}/content", headers=headers) as response:
            size = response.headers.get("content-range", "").rpartition("/")[2]
            if response.status_code == httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE and size == str(offset):
                return
            check(response)
            if response.status_code != httpx.codes.PARTIAL_CONTENT:
                out.truncate(0)
            elif not response.headers.get("content-range", "").startswith(f"bytes {offset}-"):
                raise CutroomError(f"the server did not send the range that starts at {offset}")
            for chunk in response.iter_raw():
                out.write(chunk)


def _is_large(content: Content | str) -> bool:
    return isinstance(content, Content) and content.size > LARGE


def _text(value: str | int | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _path(job_id: str) -> str:
    return f"/v1/jobs/{quote(job_id, safe='')}"
