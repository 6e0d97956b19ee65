"""Creates batches with the official client library for Python.

The first argument names the command to run. Each check prints its name when it has passed.
"""

import json
import os
import sys
import time

import openai

URL = os.environ["GATEWAY_URL"]
ENDPOINT = "/v1/chat/completions"
ENDED = ("failed", "completed", "expired", "cancelled")
client = openai.OpenAI(base_url=URL + "/v1", api_key=os.environ["PERMANENT_KEY"], max_retries=0)


def line(number, model="counted", **changes):
    body = {"model": model, "messages": [{"role": "user", "content": f"line {number} <é>"}]}
    return {"custom_id": f"call-{number}", "method": "POST", "url": ENDPOINT, "body": body} | changes


def upload(lines, purpose="batch"):
    text = "\n".join(one if isinstance(one, str) else json.dumps(one) for one in lines)
    return client.files.create(file=("calls.jsonl", text.encode()), purpose=purpose)


def create(file, endpoint=ENDPOINT, **options):
    return client.batches.create(input_file_id=file.id, endpoint=endpoint, completion_window="24h", **options)


def ended(batch, status):
    until = time.monotonic() + 120
    while batch.status not in ENDED:
        assert time.monotonic() < until, batch
        time.sleep(0.1)
        batch = client.batches.retrieve(batch.id)
    assert batch.status == status, batch
    return batch


def results(file_id):
    return [json.loads(text) for text in client.files.content(file_id).text.splitlines()] if file_id else []


def begin(count):
    """Creates a batch with the given number of requests and prints its id."""
    file = upload(line(n) for n in range(int(count)))
    assert (file.object, file.purpose, file.status) == ("file", "batch", "processed"), file
    assert file.expires_at - file.created_at == 30 * 24 * 3600, file
    batch = create(file, metadata={"of": "the test"})
    assert (batch.object, batch.status, batch.input_file_id) == ("batch", "validating", file.id), batch
    assert client.files.delete(file.id).deleted
    print(batch.id)


def finish(batch_id, count):
    """Waits for the batch to end, and checks that each request has one response."""
    count = int(count)
    batch = ended(client.batches.retrieve(batch_id), "completed")
    counts = batch.request_counts
    assert (counts.total, counts.completed, counts.failed) == (count, count, 0), batch
    assert batch.metadata == {"of": "the test"} and batch.model == "counted", batch
    assert batch.error_file_id is None and batch.errors is None, batch
    answers = results(batch.output_file_id)
    assert sorted(a["custom_id"] for a in answers) == sorted(f"call-{n}" for n in range(count))
    for answer in answers:
        number = answer["custom_id"].removeprefix("call-")
        response = answer["response"]
        assert answer["error"] is None and response["status_code"] == 200, answer
        assert response["body"]["choices"][0]["message"]["content"] == f"line {number} <é>", answer
        assert response["body"]["usage"]["cost"] == 0.000015, answer
    assert len({a["id"] for a in answers}) == count
    kept = client.files.retrieve(batch.output_file_id)
    assert (kept.purpose, kept.filename) == ("batch_output", batch_id + "_output.jsonl"), kept
    listed = [b.id for b in client.batches.list(limit=1)]
    assert listed == [batch_id], listed
    print("finished")


def files():
    one, two = upload([line(1)]), upload(["anything"], purpose="user_data")
    assert [f.id for f in client.files.list(limit=1)][:2] == [two.id, one.id]
    assert [f.id for f in client.files.list(purpose="user_data")] == [two.id]
    assert client.files.content(two.id).read() == b"anything"
    for file in (one, two):
        assert client.files.delete(file.id).deleted
        rejected(openai.NotFoundError, lambda file=file: client.files.retrieve(file.id))


def rejected(kind, call):
    try:
        call()
    except kind as error:
        return error
    raise AssertionError(f"no {kind.__name__} was raised")


def rejections():
    good = upload([line(1)])
    for params, param in [
        ({"input_file_id": "file_0"}, "input_file_id"),
        ({"endpoint": "/v1/moderations"}, "endpoint"),
        ({"completion_window": "1h"}, "completion_window"),
    ]:
        wanted = {"input_file_id": good.id, "endpoint": ENDPOINT, "completion_window": "24h"} | params
        error = rejected(openai.BadRequestError, lambda wanted=wanted: client.batches.create(**wanted))
        assert error.param == param, error
    error = rejected(openai.BadRequestError, lambda: create(upload(["x"], purpose="user_data")))
    assert "purpose" in str(error), error
    stranger = client.with_options(api_key=os.environ["OTHER_KEY"])
    for call in (
        lambda: stranger.files.retrieve(good.id),
        lambda: stranger.files.content(good.id),
        lambda: stranger.batches.retrieve("batch_0"),
    ):
        rejected(openai.NotFoundError, call)
    rejected(
        openai.BadRequestError,
        lambda: stranger.batches.create(input_file_id=good.id, endpoint=ENDPOINT, completion_window="24h"),
    )
    rejected(openai.ConflictError, lambda: client.batches.cancel(ended(create(good), "completed").id))


def flaws():
    lines = [line(1), "", "{", line(1), line(3, url="/v1/embeddings"), line(4) | {"body": line(4)["body"] | {"stream": True}}]
    batch = ended(create(upload(lines)), "failed")
    reported = [(e.line, e.code) for e in batch.errors.data]
    assert reported == [
        (3, "invalid_json_line"),
        (4, "duplicate_custom_id"),
        (5, "invalid_url"),
        (6, "stream_not_allowed"),
    ], batch
    assert batch.request_counts.total == 0 and batch.failed_at, batch


def failures():
    """Checks that a rejected request is in the error file and that the others have responses."""
    wrong = line(2)
    wrong["body"]["temperature"] = 5
    batch = ended(create(upload([line(1), wrong, line(3)])), "completed")
    assert (batch.request_counts.completed, batch.request_counts.failed) == (2, 1), batch
    (failure,) = results(batch.error_file_id)
    assert failure["custom_id"] == "call-2" and failure["response"]["status_code"] == 400, failure
    assert failure["response"]["body"]["error"]["param"] == "temperature", failure


def cancelling():
    """Cancels a batch while the model server delays its requests. Live requests overtake the batch's."""
    batch = create(upload(line(n, "held") for n in range(200)))
    while client.batches.retrieve(batch.id).status != "in_progress":
        time.sleep(0.05)
    answer = client.chat.completions.create(model="held", messages=[{"role": "user", "content": "live"}])
    assert answer.choices[0].message.content == "live", answer
    batch = client.batches.cancel(batch.id)
    assert batch.status == "cancelling" and batch.cancelling_at, batch
    open(os.environ["RELEASE"], "w").close()
    batch = ended(client.batches.retrieve(batch.id), "cancelled")
    counts = batch.request_counts
    assert counts.total == 200 == counts.completed + counts.failed and counts.failed > 0, batch
    lines = results(batch.output_file_id) + results(batch.error_file_id)
    assert sorted(one["custom_id"] for one in lines) == sorted(f"call-{n}" for n in range(200))
    assert {one["error"]["code"] for one in results(batch.error_file_id)} == {"batch_cancelled"}
    assert client.batches.cancel(batch.id).status == "cancelled"


if __name__ == "__main__":
    if sys.argv[1] in ("begin", "finish"):
        globals()[sys.argv[1]](*sys.argv[2:])
    else:
        for check in (files, rejections, flaws, failures, cancelling):
            check()
            print(check.__name__)
