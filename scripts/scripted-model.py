"""A model server that streams chat, Responses and Messages from a script: python3 scripts/scripted-model.py PORT

If the conversation names a file /…/hello-….txt, it calls the caller's tool that writes files, or a shell, or without
tools returns the file in aider's format. After the tool's result it returns a text.
"""

import json
import re
import shlex
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TEXT, CONTENT = "The file is written.", "hello from the model\n"
TOOLS = ["write", "write_file", "editor", "apply_patch", "exec_command", "shell_command", "bash", "submit_and_exit"]


def texts(value):
    """Returns all texts in a JSON value."""
    if isinstance(value, str):
        return [value]
    members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    return [text for member in members for text in texts(member)]


def argument(name, kind, path):
    key = name.lower().replace("_", "")
    if key in ("filepath", "path"):
        return path
    if key in ("content", "newtext"):
        return CONTENT
    if key in ("command", "cmd"):
        return f"printf %s {shlex.quote(CONTENT)} > {shlex.quote(path)}"
    return {"boolean": True, "integer": 1, "number": 1, "array": [], "object": {}}.get(kind, "write a file")


def decide(body, done):
    """Returns a text, or a tool's name, its type and its arguments."""
    tools = {}
    for tool in body.get("tools") or []:
        function = tool.get("function") or tool
        schema = function.get("parameters") or function.get("input_schema") or {}
        tools[function.get("name", "").lower()] = function.get("name"), tool.get("type"), schema
    paths = re.findall(r"/[\w./-]+/hello-\d+\.txt", "\n".join(texts(body.get("messages") or body.get("input"))))
    if not paths:
        return "A greeting"
    path, names = paths[-1], ["submit_and_exit"] if done else TOOLS
    for name, kind, schema in [tools[n] for n in names if n in tools]:
        if kind == "custom":
            return name, kind, f"*** Begin Patch\n*** Add File: {path}\n+{CONTENT}*** End Patch"
        wanted = [*schema.get("required", []), *(p for p in schema.get("properties", {}) if p == "new_text")]
        return name, kind, {p: argument(p, schema["properties"][p].get("type"), path) for p in wanted}
    return TEXT if done or tools else f"{path}\n```\n{CONTENT}```\n"


def chat(body):
    answer = decide(body, body["messages"][-1]["role"] == "tool")
    deltas, reason = [{"role": "assistant", "content": ""}, {"reasoning": "I plan."}], "stop"
    if isinstance(answer, str):
        deltas += [{"content": word} for word in re.findall(r"\S+\s*", answer)]
    else:
        arguments, reason = json.dumps(answer[2]), "tool_calls"
        first = {"index": 0, "id": f"call_{time.time_ns()}", "type": "function", "function": {"name": answer[0], "arguments": ""}}
        deltas += [{"tool_calls": [first]}, *({"tool_calls": [{"index": 0, "function": {"arguments": part}}]} for part in
                                              (arguments[:9], arguments[9:]))]
    base = {"id": f"chatcmpl-{time.time_ns()}", "object": "chat.completion.chunk", "created": int(time.time()), "model": body["model"]}
    for delta in deltas:
        yield None, {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    yield None, {**base, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}
    yield None, {**base, "choices": [], "usage": {"prompt_tokens": 99, "completion_tokens": 9, "total_tokens": 108}}


def responses(body):
    answer = decide(body, isinstance(body["input"], list) and body["input"][-1].get("type", "").endswith("call_output"))
    base = {"id": f"resp_{time.time_ns()}", "object": "response", "created_at": int(time.time()), "model": body["model"], "output": [],
            "status": "in_progress", "parallel_tool_calls": True, "tool_choice": "auto", "tools": body.get("tools") or []}
    id, call = f"item_{time.time_ns()}", f"call_{time.time_ns()}"
    at = {"item_id": id, "output_index": 0}
    if isinstance(answer, str):
        part = {"type": "output_text", "text": answer, "annotations": []}
        item = {"type": "message", "id": id, "role": "assistant", "status": "completed", "content": [part]}
        empty, deltas = {"content": []}, [
            ("content_part.added", {**at, "content_index": 0, "part": {**part, "text": ""}}),
            *(("output_text.delta", {**at, "content_index": 0, "delta": word, "logprobs": []}) for word in re.findall(r"\S+\s*", answer)),
            ("output_text.done", {**at, "content_index": 0, "text": answer, "logprobs": []}),
            ("content_part.done", {**at, "content_index": 0, "part": part})]
    else:
        kind, field, value = ("custom_tool_call", "input", answer[2]) if answer[1] == "custom" else (
            "function_call", "arguments", json.dumps(answer[2]))
        item = {"type": kind, "id": id, "call_id": call, "name": answer[0], field: value, "status": "completed"}
        event = f"{kind}_{field}"
        empty, deltas = {field: ""}, [(event + ".delta", {**at, "delta": value}), (event + ".done", {**at, field: value})]
    usage = {"input_tokens": 99, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 9,
             "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 108}
    started = {**item, **empty, "status": "in_progress"}
    events = [("created", {"response": base}), ("output_item.added", {"output_index": 0, "item": started}),
              *deltas, ("output_item.done", {"output_index": 0, "item": item}),
              ("completed", {"response": {**base, "status": "completed", "output": [item], "usage": usage}})]
    for number, (name, fields) in enumerate(events):
        yield "response." + name, {"type": "response." + name, "sequence_number": number, **fields}


def messages(body):
    content = body["messages"][-1]["content"]
    answer = decide(body, isinstance(content, list) and any(block["type"] == "tool_result" for block in content))
    usage = {"input_tokens": 99, "output_tokens": 9}
    if isinstance(answer, str):
        block, deltas, reason = {"type": "text", "text": ""}, [{"type": "text_delta", "text": answer}], "end_turn"
    else:
        block = {"type": "tool_use", "id": f"toolu_{time.time_ns()}", "name": answer[0], "input": {}}
        deltas, reason = [{"type": "input_json_delta", "partial_json": json.dumps(answer[2])}], "tool_use"
    message = {"id": f"msg_{time.time_ns()}", "type": "message", "role": "assistant", "model": body["model"], "content": [],
               "stop_reason": None, "stop_sequence": None, "usage": usage}
    for name, fields in [
        ("message_start", {"message": message}), ("content_block_start", {"index": 0, "content_block": block}),
        *(("content_block_delta", {"index": 0, "delta": delta}) for delta in deltas), ("content_block_stop", {"index": 0}),
        ("message_delta", {"delta": {"stop_reason": reason, "stop_sequence": None}, "usage": usage}), ("message_stop", {})]:
        yield name, {"type": name, **fields}


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path.endswith("/count_tokens"):
            data, kind = b'{"input_tokens": 99}', "application/json"
        else:
            events = {"/v1/chat/completions": chat, "/v1/responses": responses, "/v1/messages": messages}[self.path](body)
            data = "".join((f"event: {name}\n" if name else "") + f"data: {json.dumps(event)}\n\n" for name, event in events)
            data, kind = (data + ("data: [DONE]\n\n" if self.path.endswith("completions") else "")).encode(), "text/event-stream"
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
