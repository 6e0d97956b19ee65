"""Reads a webhook as JSON, verifies it as a receiver would, and prints its type."""

import json
import sys

from standardwebhooks.webhooks import Webhook

message = json.load(sys.stdin)
print(Webhook(message["secret"]).verify(message["body"], message["headers"])["type"])
