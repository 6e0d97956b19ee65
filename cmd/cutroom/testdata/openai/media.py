"""Edits images and videos with the official client library for Python. See client.py."""

import base64
import io
import os
import struct
import sys
import warnings

import openai

warnings.simplefilter("ignore", DeprecationWarning)  # OpenAI has deprecated its own video API
MEDIA = sys.argv[1]
client = openai.OpenAI(base_url=os.environ["GATEWAY_URL"] + "/v1", api_key=os.environ["PERMANENT_KEY"], max_retries=0)


def media(name):
    return open(os.path.join(MEDIA, name), "rb")


def rejected(kind, call):
    try:
        call()
    except kind as error:
        return error
    raise AssertionError(f"no {kind.__name__} was raised")


def size(png):
    return "x".join(str(side) for side in struct.unpack(">II", png[16:24]))


def models():
    listed = {m.id: m.capabilities for m in client.models.list()}
    assert listed["gen-2.5"] == ["videos"] and listed["gen-image-2"] == ["images/edits"], listed


def edit():
    answer = client.images.edit(model="gen-image-2", image=media("reference.jpg"), prompt="pencil sketch", size="512x512")
    png = base64.b64decode(answer.data[0].b64_json)
    assert png.startswith(b"\x89PNG") and answer.output_format == "png" and answer.size == size(png), answer.size
    images = [media("reference.jpg"), media("garment.png")]
    answer = client.images.edit(model="gen-image-latest", image=images, prompt="film noir", n=2)
    assert len(answer.data) == 2 and answer.data[0].b64_json
    raw = client.images.with_raw_response.edit(
        model="gen-image-2", image=io.BytesIO(media("reference.jpg").read()), prompt="golden hour", response_format="url")
    assert raw.headers["x-understood"] == "golden hour" and "/v1/shares/job_" in raw.parse().data[0].url


def stream():
    events = list(client.images.edit(model="gen-image-2", image=media("reference.jpg"), prompt="pencil sketch", stream=True))
    assert [e.type for e in events] == ["image_edit.completed"] and events[0].usage.total_tokens == 0
    assert size(base64.b64decode(events[0].b64_json)) == events[0].size


def generate():
    error = rejected(openai.NotFoundError, lambda: client.images.generate(model="gen-image-2", prompt="a cat"))
    assert error.code == "model_not_found" and "/v1/images/generations" in error.message


def video():
    made = client.videos.create_and_poll(
        model="gen-2.5", prompt="a watercolor painting", input_reference=media("clip.mp4"), size="1280x720", seconds="4",
        poll_interval_ms=300)
    assert made.status == "completed" and made.progress == 100 and made.seconds == "4", made
    assert client.videos.download_content(made.id).read()[4:8] == b"ftyp"
    assert client.videos.download_content(made.id, variant="thumbnail").read().startswith(b"\xff\xd8")
    again = client.videos.poll(client.videos.remix(made.id, prompt="film noir").id, poll_interval_ms=300)
    assert again.status == "completed" and again.remixed_from_video_id == made.id and again.model == "gen-2.5", again
    edited = client.videos.edit(prompt="golden hour", video=media("clip.mp4"))
    assert edited.model == "gen-2.5" and edited.remixed_from_video_id is None, edited
    for video in again, edited:
        client.videos.delete(video.id)


def videos():
    made = client.videos.create(model="gen-pro-t2v", prompt="aurora", size="480x832")
    width, height = made.size.split("x")
    assert int(width) < int(height) and float(made.seconds) > 0, made
    ids = [v.id for v in client.videos.list(limit=1)]
    assert ids[0] == made.id and len(ids) == 2, ids
    assert [v.id for v in client.videos.list(limit=1, order="asc")] == ids[::-1]
    assert client.videos.delete(made.id).deleted
    shown = client.videos.create(prompt="the camera moves", input_reference=media("reference.jpg"))
    assert shown.model == "gen-pro-i2v" and client.videos.poll(shown.id, poll_interval_ms=300).status == "completed", shown
    client.videos.delete(shown.id)
    rejected(openai.NotFoundError, lambda: client.videos.retrieve(made.id))


def errors():
    error = rejected(openai.BadRequestError, lambda: client.videos.create(model="gen-2.5", prompt="x"))
    assert error.param == "input_reference" and error.code == "missing_required_parameter"
    mask = lambda: client.images.edit(model="gen-image-2", image=media("garment.png"), mask=media("garment.png"), prompt="x")
    assert rejected(openai.BadRequestError, mask).param == "mask"
    other = client.with_options(api_key=os.environ["WRONG_KEY"])
    rejected(openai.AuthenticationError, lambda: other.videos.list())


for check in models, edit, stream, generate, video, videos, errors:
    check()
    print(check.__name__, flush=True)
