"""Sends a prompt to a language model through the gateway, with OpenAI's client: chat.py TEXT."""

import os
import sys

from openai import OpenAI

gateway = OpenAI(base_url=os.environ["CUTROOM_INFERENCE_URL"] + "/v1", api_key=os.environ["CUTROOM_API_KEY"])
stream = gateway.chat.completions.create(
    model="cutroom-echo", messages=[{"role": "user", "content": sys.argv[1]}], stream=True
)
for chunk in stream:
    print(chunk.choices[0].delta.content or "", end="")
print()
