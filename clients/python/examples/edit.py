"""Edits a video or an image: edit.py INPUT OUTPUT MODEL PROMPT."""

import sys

from cutroom import APIError, Cutroom, JobFailed

source, output, model, prompt = sys.argv[1:]
with Cutroom() as cutroom:
    try:
        path = cutroom.edit(
            source,
            output,
            model=model,
            prompt=prompt,
            on_change=lambda job: print(f"{job.status.value} {job.progress:.0%}"),
        )
    except (APIError, JobFailed) as failure:
        sys.exit(str(failure))
print(path)
