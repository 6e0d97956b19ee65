"""A client for Cutroom: edit videos and images, make videos from text, and follow jobs.

    from cutroom import Cutroom

    with Cutroom() as cutroom:
        cutroom.edit("clip.mp4", "edited.mp4", model="gen-2.5", prompt="a watercolor painting")

`cutroom.generated` is generated from the service's OpenAPI document and contains every call. The
other modules are written by hand. They add streaming uploads, waiting, retries, and downloads that
resume.
"""

from .client import Cutroom
from .errors import APIError, CutroomError, JobFailed
from .generated.models import CredentialsReport, File, Job, JobCreated, JobStatus, Share, Token
from .sources import Source

__all__ = [
    "APIError",
    "CredentialsReport",
    "Cutroom",
    "CutroomError",
    "File",
    "Job",
    "JobCreated",
    "JobFailed",
    "JobStatus",
    "Share",
    "Source",
    "Token",
]
