"""Compares our messages with LiveKit's definitions.

Each line of the standard input describes a message: its name, its encoding (base64), and its content (JSON). For
each, prints how LiveKit's definition encodes the content (base64), or how the decoded content differs.
"""

import base64
import json
import sys

from google.protobuf import json_format
from livekit.protocol import models, rtc

for line in sys.stdin:
    message = json.loads(line)
    name = message["name"]
    kind = getattr(rtc, name, None) or getattr(models, name)
    decoded = kind.FromString(base64.b64decode(message["encoded"]))
    content = json_format.MessageToDict(decoded, preserving_proto_field_name=True)
    if content != message["content"]:
        print(f"{name} is {content}, and not {message['content']}")
        continue
    print(base64.b64encode(json_format.ParseDict(message["content"], kind()).SerializeToString()).decode())
