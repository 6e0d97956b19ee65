"""Prints what differs between the messages on standard input and LiveKit's definition."""

import json
import sys

from google.protobuf.descriptor import FieldDescriptor
from livekit.protocol import models, rtc

KINDS = {
    FieldDescriptor.TYPE_STRING: "string",
    FieldDescriptor.TYPE_BYTES: "bytes",
    FieldDescriptor.TYPE_BOOL: "bool",
    FieldDescriptor.TYPE_INT32: "int32",
    FieldDescriptor.TYPE_INT64: "int64",
    FieldDescriptor.TYPE_UINT32: "uint32",
    FieldDescriptor.TYPE_UINT64: "uint64",
}


def kind(field):
    if field.message_type:
        return "map" if field.message_type.GetOptions().map_entry else field.message_type.name
    return field.enum_type.name if field.enum_type else KINDS.get(field.type)


official = {}


def add_enum(enum):
    official[enum.name] = {value.name: [value.number] for value in enum.values}


def add_message(message):
    official[message.name] = {f.name: [f.number, kind(f), f.is_repeated] for f in message.fields}
    for nested in message.nested_types:
        add_message(nested)
    for enum in message.enum_types:
        add_enum(enum)


for module in (models, rtc):
    for each in module.DESCRIPTOR.message_types_by_name.values():
        add_message(each)
    for each in module.DESCRIPTOR.enum_types_by_name.values():
        add_enum(each)

for name, members in json.load(sys.stdin).items():
    for member, text in members.items():
        if official.get(name, {}).get(member) != json.loads(text):
            print(f"{name}.{member} is {text}, and not {official.get(name, {}).get(member)}")
