"use strict";
// A session of /v1/stream.

class Refusal extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

// service is the base URL of the media API.
const { service = "." } = JSON.parse(document.getElementById("settings").textContent);

async function call(method, path, key, body) {
  const headers = { "x-api-key": key };
  if (typeof body === "string") headers["content-type"] = "application/json";
  let answer;
  try {
    answer = await fetch(`${service}/${path}`, { method, headers, body });
  } catch {
    throw new Refusal(0, "The service cannot be reached.");
  }
  const said = await answer.json().catch(() => ({}));
  if (answer.ok) return said;
  if (answer.status === 401) throw new Refusal(401, "The key is unknown or was revoked.");
  const detail = Array.isArray(said.detail) ? said.detail.map(one => one.msg).join(" ") : said.detail;
  throw new Refusal(answer.status, detail || `The service returned status ${answer.status}.`);
}

// mint creates a client token. It only allows a page of this origin to open a session of the model within a minute.
async function mint(key, model) {
  if (key.startsWith("ek_")) throw new Refusal(403, "This is a client token. Paste a permanent key (ck_…).");
  const token = await call("POST", "v1/client/tokens", key, JSON.stringify({ expiresIn: 60, allowedModels: [model], allowedOrigins: [location.origin] }));
  return token.apiKey;
}

// endings translates close codes and reasons into messages for the user.
const endings = {
  1000: {
    "Maximum session duration reached.": "The session has reached the maximum duration of its token.",
    "The session was idle.": "The session ended because no frames were sent for a while.",
  },
  1001: { "": "The server is stopping. Connect again in a moment." },
  1006: { "": "The connection was lost." },
  1008: {
    "Invalid API key": "The key is invalid or was revoked.",
    "Model not allowed": "The key does not permit sessions with this model.",
    "Origin not allowed": "The service does not accept sessions from pages of this origin.",
    "Too many messages": "The session ended because too many messages were sent.",
  },
  1009: { "": "The session ended because a message was too large." },
  1011: { "": "The server could not continue the session. Connect again." },
  1013: {
    "Concurrent session limit reached.": "The account has reached its limit of open sessions. Close one and connect again.",
    "": "The service cannot open a session now. Try again in a moment.",
  },
};

function explain(code, reason) {
  const known = endings[code] || {};
  return known[reason] || known[""] || (reason ? `The session ended: ${reason}` : `The session ended (code ${code}).`);
}

// inFlight limits the JPEGs that were sent and not yet answered: one in the engine and one waiting, so that results
// are never old.
const inFlight = 2;

// After this many milliseconds without a picture of the video, send JPEGs instead.
const stalled = 3000;

// Session is one connection to /v1/stream. Pictures are sent and received as video over WebRTC. Before the video
// starts, while it stalls, and if WebRTC is not available, they are sent as JPEGs in WebSocket messages.
//
// It calls on.started(), on.frame(blob, latency in ms), on.video(stream) and on.message(object). At the end it calls
// on.ended(text) once, with the reason, or with "" if this page closed the session.
class Session {
  // picture is the canvas to send. If video is false, it is sent only as JPEGs.
  constructor(model, token, picture, video, on) {
    Object.assign(this, { picture, on, sent: [], started: false, closed: false, why: "" });
    if (!video) this.why = "the server has no WebRTC";
    else if (!hasRoom()) this.why = "this browser has no WebRTC";
    // With queue, the session waits for its turn if the account has reached its session limit.
    const url = new URL(`v1/stream?${new URLSearchParams({ model, api_key: token, queue: true })}`, location.href);
    url.protocol = url.protocol.replace("http", "ws");
    this.socket = new WebSocket(url);
    this.socket.binaryType = "blob";
    this.socket.onopen = () => this.why || this.socket.send(JSON.stringify({ type: "livekit_join" }));
    this.socket.onmessage = event => typeof event.data === "string" ? this.hear(JSON.parse(event.data)) : this.receive(event.data);
    this.socket.onclose = event => {
      this.leave();
      on.ended(this.closed ? "" : explain(event.code, event.reason));
    };
  }

  hear(message) {
    if (message.type === "session_started") {
      this.started = true;
      this.settled = performance.now();
      this.on.started();
    }
    if (message.type === "livekit_room_info") this.join(message);
    this.on.message(message);
  }

  join({ livekit_url: url, token }) {
    this.track = this.picture.captureStream(0).getVideoTracks()[0];
    this.track.contentHint = "motion";
    this.room = new Room(url, token, this.track, {
      video: stream => this.on.video(stream),
      lost: () => {
        this.leave();
        this.why = "WebRTC has no connection to the server";
      },
    });
  }

  leave() {
    if (this.track) this.track.stop();
    if (this.room) this.room.close();
    this.track = this.room = undefined;
  }

  seen() {
    this.lastVideo = performance.now();
    this.sent = [];
  }

  // byVideo reports whether pictures are currently arriving as video.
  byVideo() {
    return this.room !== undefined && performance.now() - this.lastVideo < stalled;
  }

  receive(blob) {
    const now = performance.now(), sent = this.sent.shift();
    this.heard = now;
    if (!this.sent.length) this.settled = now;
    this.on.frame(blob, sent === undefined ? NaN : now - sent);
  }

  // ready reports whether a JPEG may be sent now. The server drops a frame when a newer one arrives, and responses
  // are not numbered. So to notice dropped frames, sending sometimes pauses until all responses have arrived. If no
  // more arrive, the remaining frames count as dropped.
  ready() {
    if (!this.started || this.byVideo() || this.socket.readyState !== WebSocket.OPEN || this.socket.bufferedAmount > 0) return false;
    const now = performance.now();
    if (this.sent.length && now - Math.max(this.heard || 0, this.sent[this.sent.length - 1]) > 2000) this.sent = [];
    if (!this.sent.length) this.settled = now;
    return this.sent.length < inFlight && now - this.settled < 3000;
  }

  drawn() {
    if (this.track) this.track.requestFrame();
  }

  sendFrame(blob) {
    if (!this.ready()) return;
    this.sent.push(performance.now());
    this.socket.send(blob);
  }

  // say sends a message. It returns false if no session is open.
  say(message) {
    if (!this.started || this.socket.readyState !== WebSocket.OPEN) return false;
    this.socket.send(JSON.stringify(message));
    return true;
  }

  close() {
    this.closed = true;
    this.leave();
    this.socket.close(1000);
  }
}
