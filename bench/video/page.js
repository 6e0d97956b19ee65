"use strict";
// Sends video from a canvas at 25 frames per second, either through a server or to another peer connection on this
// page. Each frame carries a marker, so the page can measure when the frame is displayed. The page gets its orders
// from the program that serves it, and reports the measurements to it.

const canvas = document.getElementById("sent"), video = document.getElementById("shown");
const pen = canvas.getContext("2d", { alpha: false, willReadFrequently: true });
const interval = 40;

const sleep = time => new Promise(done => setTimeout(done, time));

// Loop sends pictures of the canvas along one path and shows them in the video element.
class Loop {
  constructor() {
    this.watch = new Stopwatch();
    this.seen = [];
    this.opened = performance.now();
    this.track = canvas.captureStream(0).getVideoTracks()[0];
    this.track.contentHint = "motion";
    this.drawing = setInterval(() => requestAnimationFrame(now => {
      drawPattern(pen, now / 1000);
      this.watch.mark(pen);
      this.track.requestFrame();
    }), interval);
  }

  show(stream) {
    video.srcObject = stream;
    video.play().catch(() => {});
    const note = (_, frame) => {
      if (video.srcObject !== stream) return;
      video.requestVideoFrameCallback(note);
      const marker = readMarker(video, video.videoWidth, video.videoHeight);
      if (marker === undefined || marker === this.last) return;
      this.last = marker;
      this.first ??= frame.presentationTime - this.opened;
      this.seen.push([frame.presentationTime, frame.presentationTime - this.watch.drawn[marker]]);
    };
    video.requestVideoFrameCallback(note);
  }

  // measure returns the latencies of the frames that are displayed during the given number of seconds, and the number
  // of frames drawn.
  async measure(seconds) {
    const from = this.seen.length, drawn = this.watch.number;
    await sleep(1000 * seconds);
    return {
      latencies: this.seen.slice(from).map(([, latency]) => latency),
      drawn: (this.watch.number - drawn + markers) % markers,
    };
  }

  // settled waits until the median latency of the last half second is nearly the given latency again, for at most 20
  // seconds. It returns how long that took, in milliseconds.
  async settled(latency) {
    const begun = performance.now();
    for (;;) {
      await sleep(100);
      const now = performance.now(), recent = this.seen.filter(([at]) => at > now - 500).map(([, took]) => took).sort((a, b) => a - b);
      if (recent.length > 8 && recent[recent.length >> 1] < 1.25 * latency + 5) return now - begun;
      if (now - begun > 20000) return now - begun;
    }
  }

  async pictures(count) {
    for (let waited = 0; this.seen.length < count; waited += 20) {
      if (waited > 30000) throw new Error("no pictures are shown");
      await sleep(20);
    }
  }

  close() {
    clearInterval(this.drawing);
    this.track.stop();
    video.srcObject = null;
    this.end();
  }
}

// direct opens a loop whose video goes to another peer connection of this page.
async function direct() {
  const loop = new Loop(), from = new RTCPeerConnection(), to = new RTCPeerConnection();
  from.onicecandidate = event => event.candidate && to.addIceCandidate(event.candidate);
  to.onicecandidate = event => event.candidate && from.addIceCandidate(event.candidate);
  to.ontrack = event => {
    if ("jitterBufferTarget" in event.receiver) event.receiver.jitterBufferTarget = 0;
    loop.show(new MediaStream([event.track]));
  };
  const out = from.addTransceiver(loop.track, { direction: "sendonly", sendEncodings: [{ maxBitrate }] });
  out.setCodecPreferences(RTCRtpReceiver.getCapabilities("video").codecs.filter(codec => /\/(vp8|rtx)$/i.test(codec.mimeType)));
  loop.end = () => {
    from.close();
    to.close();
  };
  await from.setLocalDescription();
  await to.setRemoteDescription(from.localDescription);
  await to.setLocalDescription();
  await from.setRemoteDescription(to.localDescription);
  return loop;
}

// served opens a loop whose video goes through the server's stream at url.
async function served(url) {
  const loop = new Loop(), control = new WebSocket(url);
  control.onopen = () => control.send(JSON.stringify({ type: "livekit_join", passthrough: true }));
  loop.end = () => {
    if (loop.room) loop.room.close();
    control.close();
  };
  control.onmessage = event => {
    const message = JSON.parse(event.data);
    if (message.type !== "livekit_room_info") return;
    loop.room = new Room(message.livekit_url, message.token, loop.track, { video: stream => loop.show(stream), lost() {} });
  };
  return loop;
}

async function network(drop) {
  await fetch(`network?drop=${drop}`, { method: "POST" });
}

// latency measures the direct and the served path alternately.
async function latency({ url, rounds, seconds }) {
  const report = { direct: [], served: [] };
  for (let round = 0; round < rounds; round++) {
    for (const [kind, open] of [["direct", direct], ["served", () => served(url)]]) {
      const loop = await open();
      await loop.pictures(1);
      await sleep(3000);
      report[kind].push({ first: loop.first, ...await loop.measure(seconds) });
      loop.close();
      await sleep(500);
    }
  }
  return report;
}

// loss makes the network drop packets for a while, several times, and measures the effect.
async function loss({ url, drops, seconds }) {
  const loop = await served(url), report = [];
  await loop.pictures(1);
  await sleep(3000);
  for (const drop of drops) {
    const before = await loop.measure(seconds);
    const usual = [...before.latencies].sort((a, b) => a - b)[before.latencies.length >> 1];
    await network(drop);
    await sleep(1000);
    const during = await loop.measure(seconds);
    await network(0);
    report.push({ drop, before, during, settled: await loop.settled(usual) });
    await sleep(3000);
  }
  loop.close();
  return report;
}

(async () => {
  const order = await (await fetch("order")).json();
  const report = await { latency, loss }[order.do](order).catch(failure => ({ failure: String(failure) }));
  await fetch("report", { method: "POST", body: JSON.stringify(report) });
})();
