"""Uses the Python client that was generated into the folder of the first argument."""

import io
import os
import sys
import time

sys.path.insert(0, sys.argv[1])

from generated import AuthenticatedClient
from generated.api.files import list_files, upload_file
from generated.api.inference import create_chat_completion
from generated.api.jobs import create_job_gen_2_1, get_job, get_job_content
from generated.api.models import resolve_models
from generated.api.tokens import create_client_token
from generated.models import (
    ChatMessage, ChatMessageRole, ChatRequest, GatewayError, JobStatus, ResolveRequest, TokenRequest, ValidationError,
)
from generated.models.create_job_gen_21_body import CreateJobGen21Body
from generated.models.upload_file_body import UploadFileBody
from generated.types import File

url, key, clip = os.environ["CUTROOM_URL"], os.environ["CUTROOM_API_KEY"], open(os.environ["CLIP"], "rb").read()
client = AuthenticatedClient(base_url=url, token=key, prefix="", auth_header_name="x-api-key")


def video():
    return File(payload=io.BytesIO(clip), file_name="clip.mp4", mime_type="video/mp4")


stored = upload_file.sync(client=client, body=UploadFileBody(file=video()))
assert stored.size_bytes == len(clip), stored
assert [file.id for file in list_files.sync(client=client).files] == [stored.id]

made = create_job_gen_2_1.sync(client=client, body=CreateJobGen21Body(data=video(), prompt="winter", seed=7))
job, deadline = get_job.sync(made.job_id, client=client), time.monotonic() + 120
while job.status not in (JobStatus.COMPLETED, JobStatus.FAILED):
    assert time.monotonic() < deadline, job
    time.sleep(0.1)
    job = get_job.sync(made.job_id, client=client)
assert job.status == JobStatus.COMPLETED and job.seed == 7, job
content = get_job_content.sync_detailed(made.job_id, client=client)
assert content.status_code == 200 and content.content[4:8] == b"ftyp", content

refused = create_job_gen_2_1.sync(client=client, body=CreateJobGen21Body(data=video(), seed=-1))
assert isinstance(refused, ValidationError), refused
assert refused.detail[0].loc == ["body", "seed"] and refused.detail[0].type_ == "greater_than_equal", refused

token = create_client_token.sync(client=client, body=TokenRequest(expires_in=60, allowed_models=["gen-2.1"]))
assert token.api_key.startswith("ek_") and token.permissions.models == ["gen-2.1"] and token.constraints is None, token
for secret in (token.api_key, token.token):
    limited = AuthenticatedClient(base_url=url, token=secret, prefix="", auth_header_name="x-api-key")
    assert get_job.sync(made.job_id, client=limited).status == JobStatus.COMPLETED
assert resolve_models.sync(client=client, body=ResolveRequest(model="gen-latest")).model_id == "gen-2.5"

gateway = AuthenticatedClient(base_url=os.environ["CUTROOM_INFERENCE_URL"], token=key)
hello = ChatMessage(role=ChatMessageRole.USER, content="Hello!")
answer = create_chat_completion.sync(client=gateway, body=ChatRequest(model="cutroom-echo", messages=[hello], max_tokens=8))
assert answer.choices[0].message.content and answer.usage.total_tokens > 0, answer
failure = create_chat_completion.sync(client=gateway, body=ChatRequest(model="none", messages=[hello]))
assert isinstance(failure, GatewayError) and failure.error.code == "model_not_found", failure
print("python: ok")
