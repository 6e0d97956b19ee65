"""Errors of this package. If a service cannot be reached, the error is an `httpx.TransportError` instead."""

from __future__ import annotations

from typing import Any

import httpx

from .generated.models import Job


class CutroomError(Exception):
    """The base class of this package's errors."""


class APIError(CutroomError):
    """The service rejected a call."""

    def __init__(self, response: httpx.Response) -> None:
        self.status = response.status_code
        #: The request's id, which also appears in the service's log.
        self.request_id = response.headers.get("x-request-id", "")
        #: How many seconds to wait before a retry, as requested by the service, or 0.
        self.retry_after = retry_after(response)
        #: The invalid fields of the request (status 422).
        self.fields: list[dict[str, Any]] = []
        #: The gateway's error code, such as "model_not_found".
        self.code = ""
        super().__init__(self._read(response))

    def _read(self, response: httpx.Response) -> str:
        """Returns the error message. The body may have any format, because a proxy may have sent it."""
        try:
            body = response.json()
        except ValueError:
            body = None
        if isinstance(body, dict):
            detail, problem = body.get("detail"), body.get("error")
            if isinstance(detail, str):
                return detail
            if isinstance(detail, list):
                self.fields = [field for field in detail if isinstance(field, dict)]
                return "; ".join(f"{'.'.join(f.get('loc', [])[1:])}: {f.get('msg')}" for f in self.fields)
            if isinstance(problem, dict):
                self.code = problem.get("code") or ""
                return str(problem.get("message"))
        return f"the server returned status {self.status}"


class JobFailed(CutroomError):
    """The job failed while the caller waited for it. `job.error` contains the reason."""

    def __init__(self, job: Job) -> None:
        self.job = job
        why = f" ({job.error.code}): {job.error.message}" if job.error else ""
        super().__init__(f"the job {job.job_id} failed{why}")


def retry_after(response: httpx.Response) -> float:
    """Returns Retry-After in seconds, or 0 if it is absent or not a number."""
    try:
        return max(0.0, float(response.headers.get("retry-after", "0")))
    except ValueError:
        return 0.0


def check(response: httpx.Response) -> httpx.Response:
    """Returns a successful response. For other responses, reads the body and raises APIError."""
    if response.is_success:
        return response
    response.read()
    raise APIError(response)
