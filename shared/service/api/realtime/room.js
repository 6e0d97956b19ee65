"use strict";
// Sends and receives a session's pictures as video over WebRTC (docs/contract/realtime.md#webrtc). Signaling uses a
// WebSocket and a few Protocol Buffers messages.

// field encodes a field of a message. The value is an integer, a string or an encoded message.
function field(number, value) {
  if (typeof value === "number") return [number << 3, ...varint(value)];
  const bytes = typeof value === "string" ? new TextEncoder().encode(value) : value;
  return [number << 3 | 2, ...varint(bytes.length), ...bytes];
}

function varint(number) {
  const bytes = [];
  for (; number > 127; number = Math.floor(number / 128)) bytes.push(number % 128 | 128);
  return [...bytes, number];
}

// fields decodes a message. It returns the list of values for each field number.
function fields(bytes) {
  const found = {};
  let at = 0;
  const integer = () => {
    for (let sum = 0, unit = 1; ; unit *= 128) {
      const byte = bytes[at++];
      sum += (byte & 127) * unit;
      if (!(byte & 128)) return sum;
    }
  };
  while (at < bytes.length) {
    const tag = integer(), value = integer(), all = found[tag >> 3] ??= [];
    // In these messages, a field is either an integer, or bytes that follow their length.
    all.push(tag & 2 ? bytes.subarray(at, at += value) : value);
  }
  return found;
}

// The numbers of the fields that are used.
const outgoing = { offer: 1, leave: 8, ping: 14 }, incoming = { join: 1, answer: 2, leave: 8 };
const description = { type: 1, sdp: 2 }, join = { iceServers: 5 }, iceServer = { urls: 1, username: 2, credential: 3 };

const texts = list => (list || []).map(bytes => new TextDecoder().decode(bytes));

// serversIn returns the ICE servers in the form that RTCPeerConnection expects.
const serversIn = message => (fields(message)[join.iceServers] || []).map(fields).map(server => ({
  urls: texts(server[iceServer.urls]), username: texts(server[iceServer.username])[0], credential: texts(server[iceServer.credential])[0],
}));

const pingTime = 5000, maxBitrate = 2_500_000;

const hasRoom = () => typeof RTCPeerConnection === "function" && "captureStream" in HTMLCanvasElement.prototype &&
  "requestVideoFrameCallback" in HTMLVideoElement.prototype && "setCodecPreferences" in RTCRtpTransceiver.prototype;

// Room connects to a room and sends it a video track. It calls on.video(stream) with the edited video, and on.lost()
// once if the connection ends.
class Room {
  constructor(url, token, track, on) {
    this.on = on;
    this.peer = new RTCPeerConnection();
    // The receiver must come first, because the room sends its video in the first media section.
    const back = this.peer.addTransceiver("video", { direction: "recvonly" });
    const out = this.peer.addTransceiver(track, { direction: "sendonly", sendEncodings: [{ maxBitrate }] });
    const codecs = RTCRtpReceiver.getCapabilities("video").codecs.filter(codec => /\/(vp8|rtx)$/i.test(codec.mimeType));
    for (const one of [back, out]) one.setCodecPreferences(codecs);
    // Show pictures as soon as possible: late ones are useless.
    if ("jitterBufferTarget" in back.receiver) back.receiver.jitterBufferTarget = 0;
    this.peer.ontrack = event => on.video(new MediaStream([event.track]));
    this.peer.onconnectionstatechange = () => this.follow(this.peer.connectionState);
    this.socket = new WebSocket(`${url}/rtc/v1?access_token=${encodeURIComponent(token)}`);
    this.socket.binaryType = "arraybuffer";
    this.pinging = setInterval(() => this.send(outgoing.ping, Date.now()), pingTime);
    this.socket.onmessage = event => this.hear(fields(new Uint8Array(event.data)));
    this.socket.onclose = () => this.end();
  }

  async offer() {
    try {
      await this.peer.setLocalDescription();
    } catch {
      return this.end();
    }
    const { type, sdp } = this.peer.localDescription;
    this.send(outgoing.offer, [...field(description.type, type), ...field(description.sdp, sdp)]);
  }

  // follow restarts ICE when the connection fails, to find another path to the server, such as TCP if UDP is blocked.
  follow(state) {
    if (state === "connected") this.sought = false;
    if (state === "failed" && this.sought) return this.end();
    if (state !== "disconnected" && state !== "failed" || this.sought) return;
    this.sought = true;
    this.peer.restartIce();
    this.offer();
  }

  send(number, message) {
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(new Uint8Array(field(number, message)));
  }

  hear(message) {
    if (message[incoming.leave]) return this.end();
    if (message[incoming.join]) {
      this.peer.setConfiguration({ iceServers: serversIn(message[incoming.join][0]) });
      this.offer();
    }
    if (!message[incoming.answer]) return;
    const [sdp] = texts(fields(message[incoming.answer][0])[description.sdp]);
    this.peer.setRemoteDescription({ type: "answer", sdp }).catch(() => this.end());
  }

  // way resolves to the protocol that carries the video, "udp" or "tcp", or to undefined before the video starts.
  async way() {
    const known = await this.peer.getStats();
    for (const one of known.values()) {
      if (one.type === "transport" && one.selectedCandidatePairId) return known.get(known.get(one.selectedCandidatePairId).localCandidateId).protocol;
    }
  }

  end() {
    if (this.ended) return;
    this.ended = true;
    this.close();
    this.on.lost();
  }

  close() {
    this.ended = true;
    clearInterval(this.pinging);
    this.send(outgoing.leave, []);
    this.socket.close();
    this.peer.close();
  }
}
