"""Verifies a webhook from JSON like a receiver, and prints its type."""

import json
import sys

from standardwebhooks.webhooks import Webhook

told = json.load(sys.stdin)
print(Webhook(told["secret"]).verify(told["body"], told["headers"])["type"])
