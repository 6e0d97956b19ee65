"use strict";
// Describes the protocol of realtime sessions, because OpenAPI cannot.

const sent = [
  ["prompt", "prompt, enhance_prompt", "Changes the prompt. The server replies with prompt_ack."],
  ["set_image", "image_ref or image_data; prompt, enhance_prompt", "Sets the reference image: the id of a stored file, or base64. null removes it. The server replies with set_image_ack."],
  ["(binary)", "a JPEG", "A frame to edit. Send at most two frames ahead of the edited ones."],
];
const received = [
  ["queue_position", "position, queue_size", "Every second while you wait for a session, if the address has queue=true."],
  ["session_started", "session_id", "First, once the session has its slot."],
  ["prompt_ack", "prompt, success, error", "After each prompt."],
  ["set_image_ack", "success, error", "After each set_image."],
  ["generation_tick", "seconds", "Every second: the length of the session so far."],
  ["generation_ended", "seconds, reason", "Last, if the server ends the session: max_session_duration, idle, key_revoked, too_many_messages, message_too_large, session_lost, internal_error or server_stopping."],
  ["error", "error", "A message was rejected. Also sent before the connection is closed with 1008 or 1013."],
  ["(binary)", "a JPEG", "An edited frame. The newest frame wins: it replaces a waiting frame, which is then not edited."],
];

const sessionSamples = address => [["JavaScript", `// An app uses a client token (ek_…), never a permanent key.
const socket = new WebSocket("${address}?model=MODEL&api_key=" + token);
socket.binaryType = "arraybuffer";
socket.onmessage = ({ data }) => {
  if (typeof data !== "string") {
    show(new Blob([data], { type: "image/jpeg" })); // shows an edited frame
    sendFrame(); // sends the next one
    return;
  }
  const message = JSON.parse(data);
  if (message.type === "session_started") {
    socket.send(JSON.stringify({ type: "prompt", prompt: "film noir" }));
    sendFrame();
  }
};
const sendFrame = () => canvas.toBlob(blob => socket.send(blob), "image/jpeg", 0.8);`], ["Python", `import json, os

from websockets.sync.client import connect

with connect("${address}?model=MODEL",
             additional_headers={"x-api-key": os.environ["CUTROOM_API_KEY"]}) as socket:
    print(json.loads(socket.recv()))  # session_started
    socket.send(json.dumps({"type": "prompt", "prompt": "film noir"}))
    socket.send(open("frame.jpg", "rb").read())
    for message in socket:
        if isinstance(message, bytes):
            open("edited.jpg", "wb").write(message)
            break`], ["Messages", `< {"type": "session_started", "session_id": "session_…"}
> {"type": "set_image", "image_ref": "file_…", "prompt": "wearing this jacket"}
< {"type": "set_image_ack", "success": true}
> (binary: a JPEG frame)
< (binary: the frame, edited)
< {"type": "generation_tick", "seconds": 1}`]];

function protocol() {
  const table = (title, rows) => [make("h4", {}, title), make("dl", {}, rows.map(([name, members, text]) => make("div", { class: "field" },
    make("dt", {}, make("span", { class: "name" }, name), make("span", { class: "type" }, members)), make("dd", {}, text))))];
  return make("section", { class: "operation", id: "realtime_protocol" },
    make("h3", {}, make("a", { href: "#realtime_protocol" }, "The messages of a session")),
    make("div", { class: "columns" },
      make("div", {},
        make("p", { class: "call" }, make("span", { class: "method get" }, "WS"), make("span", { class: "path" }, "/v1/stream?model=…")),
        make("p", {}, prose("A WebSocket. The credential is the header `x-api-key`, or `api_key` in the query, because browsers cannot set headers. Text messages are JSON objects with a `type`; binary messages are JPEG frames.")),
        table("The client sends", sent), table("The server sends", received)),
      make("div", { class: "aside" }, samples(sessionSamples(base.replace(/^http/, "ws") + "/v1/stream")))));
}
