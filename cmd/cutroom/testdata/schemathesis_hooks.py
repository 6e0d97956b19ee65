"""Supplies values to schemathesis that a schema cannot describe, and filters out its false alarms."""

import datetime
import os
import pathlib

import schemathesis
from hypothesis import strategies as st
from schemathesis.core.failures import AcceptedNegativeData
from schemathesis.openapi.checks import RejectedPositiveData


def samples(variable):
    return [pathlib.Path(path).read_bytes() for path in os.environ[variable].split(os.pathsep)]


# Forms accept only real media. schemathesis generates arbitrary bytes on its own.
schemathesis.openapi.media_type("video/mp4", st.sampled_from(samples("VIDEO_SAMPLES")))
schemathesis.openapi.media_type("image/png", st.sampled_from(samples("IMAGE_SAMPLES")))

schemathesis.openapi.format("model-name", st.sampled_from(os.environ["MODEL_NAMES"].split(",")))

# The tier of the fuzzer's development key.
schemathesis.openapi.format("own-tier", st.just("dev"))

# Times in requests must be in the future.
schemathesis.openapi.format("date-time", st.sampled_from(["2999-01-31T00:00:00Z", "2999-01-31T12:00:00.5+02:00"]))

# Webhooks may only use these URLs, because any other might name a forbidden host.
RECEIVERS = ["https://example.com/hook", "https://hooks.example.com:8443/?q=1"]
schemathesis.openapi.format("uri", st.sampled_from(RECEIVERS))


@schemathesis.hook
def before_load_schema(context, raw_schema):
    """Skips model aliases, which behave like their models."""
    paths = raw_schema["paths"]
    for path in [path for path, item in paths.items() if any("x-alias-of" in operation for operation in item.values())]:
        del paths[path]


@schemathesis.hook
def filter_failure(context, failure, case, response):
    """Ignores a failure if the OpenAPI document allows the response."""
    if response.status_code == 400 and not all(map(printable, case.headers.values())):
        return False  # the request is invalid HTTP, so the document does not apply
    rejected = isinstance(failure, RejectedPositiveData)
    if rejected and "cursor" in (case.query or {}):
        return False  # the cursor is made up: the endpoint never returned it
    if rejected and response.status_code in (412, 416):
        return False  # the stored bytes have no such range, or a different ETag
    form = getattr(case.body, "body", case.body)
    if rejected and isinstance(form, dict) and over(form.get("expires_at")):
        return False  # a time copied from a response: the times that the fuzzer makes up are in the future
    if rejected and isinstance(form, dict) and (broken(form) or form.get("warn_url") not in (None, *RECEIVERS)):
        return False
    if not isinstance(form, dict) or "json" in (case.media_type or ""):
        return True
    if isinstance(failure, AcceptedNegativeData):
        return False  # form values are strings: "0" is a valid boolean, and 7 is sent as "7"
    return not rejected or not (excluding(form) or unnameable(form) or forever(form))


def printable(text):
    return text.isascii() and text.isprintable()


def over(time):
    """Reports whether a time is in the past."""
    try:
        return datetime.datetime.fromisoformat(time) < datetime.datetime.now(datetime.UTC)
    except (TypeError, ValueError):
        return False


def broken(form):
    """Reports whether a budget's limit is a fraction of a token or job."""
    limit = form.get("limit")
    return form.get("unit", "cost") != "cost" and isinstance(limit, float) and not limit.is_integer()


def excluding(form):
    """Reports whether the form combines fields that exclude each other."""
    return (
        "reference_image.0" in form
        and not form.keys().isdisjoint({"prompt", "reference_image"})
        or form.keys() >= {"last_image", "reference_image"}
    )


def unnameable(form):
    """Reports whether a field name cannot appear in a part's header."""
    return not all(name and printable(name) for name in form)


def forever(form):
    """Reports whether the lifetime is not a valid number of seconds."""
    lifetime = str(form.get("ttl_seconds", "persistent"))
    return lifetime != "persistent" and not (lifetime.isdecimal() and 60 <= int(lifetime) <= 2592000)
