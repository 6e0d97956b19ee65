"""Uses the Python client package over a faulty network: use.py CLIP SEED."""

import io
import os
import pathlib
import sys

import httpx

from cutroom import APIError, Cutroom, JobFailed
from cutroom.generated.api.inference import create_chat_completion
from cutroom.generated.api.realtime import get_realtime_quota
from cutroom.generated.models import ChatMessage, ChatMessageRole, ChatRequest
from cutroom.sources import content_of


def rejected(kind, call):
    try:
        call()
    except kind as error:
        return error
    raise AssertionError(f"no {kind.__name__} was raised")


clip, seed = pathlib.Path(sys.argv[1]), int(sys.argv[2])
with Cutroom() as cutroom:
    stored = cutroom.files.upload(clip, ttl=3600)
    assert stored.size_bytes == clip.stat().st_size and stored.filename == clip.name, stored
    with clip.open("rb") as opened:
        again = cutroom.files.upload(opened, filename="again.mp4")
        assert not opened.closed and again.filename == "again.mp4" and again.md5 == stored.md5, again
    announced = cutroom.files.announce(content_of(clip), "persistent")
    assert announced.md5 == stored.md5 and announced.expires_at is None, announced
    assert {file.id for file in cutroom.files.list()} >= {stored.id, again.id, announced.id}

    job = cutroom.jobs.submit("gen-2.1", stored, prompt="winter", seed=seed)
    seen = []
    done = cutroom.jobs.wait(job.job_id, seen.append)
    assert done.status == "completed" and done.seed == seed and seen[-1] == done, done
    assert [each.job_id for each in cutroom.jobs.list(model="gen-2.1") if each.seed == seed] == [job.job_id]
    path = cutroom.jobs.download(job.job_id, clip.with_name(f"{seed}.mp4"))
    assert path.read_bytes()[4:8] == b"ftyp" and not list(clip.parent.glob("*.part")), path

    broken = cutroom.jobs.submit("gen-2.1", clip.read_bytes()[: clip.stat().st_size // 2], prompt="winter")
    failure = rejected(JobFailed, lambda: cutroom.jobs.wait(broken.job_id))
    assert failure.job.error.code == "invalid_input" and broken.job_id in str(failure), failure
    error = rejected(APIError, lambda: cutroom.jobs.submit("gen-2.1", io.BytesIO(clip.read_bytes()), seed=-1))
    assert error.status == 422 and error.fields[0]["loc"] == ["body", "seed"] and error.request_id, error
    assert rejected(APIError, lambda: cutroom.jobs.download("job_none", "none.mp4")).status == 404

    jpeg = b"\xff\xd8\xff"
    pictures = [cutroom.jobs.thumbnail(job.job_id), cutroom.jobs.thumbnail(job.job_id, "input")]
    pictures += [cutroom.jobs.thumbnail(job.job_id, size="poster"), cutroom.files.thumbnail(stored.id)]
    assert [each[:3] for each in pictures] == [jpeg] * 4 and pictures[2] != pictures[0]
    assert rejected(APIError, lambda: cutroom.files.thumbnail("file_none")).status == 404
    assert [each.job_id for each in cutroom.jobs.list(search=job.job_id)] == [job.job_id]
    link = cutroom.jobs.share(job.job_id, expires_in=60)
    assert httpx.get(link.url).content == path.read_bytes(), link
    assert rejected(APIError, lambda: cutroom.jobs.share(job.job_id, expires_in=0)).status == 422

    for each in (stored, again, announced):
        cutroom.files.delete(each.id)
    token = cutroom.create_token(expires_in=60, models=["gen-2.1"])
    with Cutroom(api_key=token.api_key) as limited:
        assert limited.jobs.get(job.job_id) == done
        assert rejected(APIError, limited.create_token).status == 403

    cutroom.jobs.delete(job.job_id)
    assert rejected(APIError, lambda: cutroom.jobs.get(job.job_id)).status == 404
    assert httpx.get(link.url).status_code == 404

    assert get_realtime_quota.sync(client=cutroom.media).limit == 5
    hello = ChatMessage(role=ChatMessageRole.USER, content="Hello!")
    question = ChatRequest(model="cutroom-echo", messages=[hello])
    answer = create_chat_completion.sync(client=cutroom.inference, body=question)
    assert answer.choices[0].message.content and answer.usage.total_tokens > 0, answer
    shown = repr([cutroom, vars(cutroom), cutroom.media, cutroom.jobs, error, failure])
    assert os.environ["CUTROOM_API_KEY"] not in shown, shown

key = os.environ.pop("CUTROOM_API_KEY")
assert "CUTROOM_API_KEY" in str(rejected(ValueError, Cutroom))
print("python: ok")
