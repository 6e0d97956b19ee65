"use strict";
// This page sends frames from a source to a session, and shows the edited frames.

const element = id => document.getElementById(id);
const { models, webrtc } = JSON.parse(element("settings").textContent);
const examples = ["a watercolor painting", "cyberpunk neon", "film noir", "anime", "pencil sketch", "oil painting", "pixel art", "golden hour", "snowy winter", "comic book", "fire", "underwater"];
const width = 640, height = 360, quality = .75, framesPerSecond = 30;
const original = element("original").getContext("2d", { alpha: false, willReadFrequently: true });
const edited = element("edited").getContext("2d", { alpha: false });

let session; // the open Session, or undefined
let watch; // the Stopwatch for the session's pictures
let attempt = 0; // the number of connection attempts, which shows whether an attempt was abandoned
let camera; // the camera's video element, or undefined for the test pattern
let image; // the id and name of the stored reference image
let asked = ""; // the prompt that was last sent

// The console embeds this page, and has its own header and color scheme switch.

document.documentElement.classList.toggle("framed", window !== top);
const schemeKey = "cutroom-scheme";
const followScheme = () => {
  const chosen = localStorage.getItem(schemeKey);
  if (chosen) document.documentElement.dataset.theme = chosen;
  else delete document.documentElement.dataset.theme;
};
addEventListener("storage", event => event.key === schemeKey && followScheme());
followScheme();

// Notices

function complain(text) {
  element("notice").textContent = text;
  element("notice").hidden = !text;
}

function note(id, text, mood) {
  element(id).textContent = text;
  element(id).className = "note" + (mood ? " " + mood : "");
}

// isApplied reports whether a change was accepted, even if the engine did not follow it.
const isApplied = id => element(id).classList.contains("good") || element(id).classList.contains("warn");

function show(state, text) {
  element("state").textContent = text;
  document.body.dataset.state = state;
  element("connect").textContent = state === "closed" ? "Connect" : "Disconnect";
}

// Key

const storageKey = "cutroom-key";
element("key").value = sessionStorage.getItem(storageKey) || "";

function key() {
  const value = element("key").value.trim();
  if (value) sessionStorage.setItem(storageKey, value);
  else sessionStorage.removeItem(storageKey);
  return value;
}

// Pictures

let lastDrawn = 0, encoding = false;

function drawOriginal(now) {
  drawSource(now);
  if (!session) return;
  watch.mark(original);
  session.drawn();
}

function drawSource(now) {
  if (!camera) return drawPattern(original, now / 1000);
  if (camera.readyState < HTMLMediaElement.HAVE_CURRENT_DATA) return;
  // Crop the middle to the canvas's aspect ratio, and mirror it, as users expect.
  const scale = Math.max(width / camera.videoWidth, height / camera.videoHeight);
  const wide = camera.videoWidth * scale, high = camera.videoHeight * scale;
  original.setTransform(-1, 0, 0, 1, width, 0);
  original.drawImage(camera, (width - wide) / 2, (height - high) / 2, wide, high);
  original.resetTransform();
}

function loop(now) {
  requestAnimationFrame(loop);
  // Allow 4 ms, because the intervals between a display's frames vary.
  if (now - lastDrawn < 1000 / framesPerSecond - 4) return;
  lastDrawn = now;
  drawOriginal(now);
  if (session && !encoding && session.ready()) {
    encoding = true;
    const current = session;
    element("original").toBlob(blob => {
      encoding = false;
      if (blob) current.sendFrame(blob);
    }, "image/jpeg", quality);
  }
}

let arrived = 0, shown = 0; // numbers of JPEGs
let pictures = 0; // the number of pictures shown, as JPEGs or as video

async function showEdited(blob, latency) {
  const order = ++arrived, stopwatch = watch;
  const picture = await createImageBitmap(blob).catch(() => undefined);
  if (!picture) return;
  if (order > shown) {
    shown = order;
    draw(picture, picture.width, picture.height);
    const took = stopwatch.took(picture, picture.width, picture.height, performance.now());
    // If the marker is unreadable, the time since the JPEG was sent is a good substitute.
    count(isNaN(took) ? latency : took);
  }
  picture.close();
}

function draw(picture, width, height) {
  const canvas = element("edited");
  if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
  edited.drawImage(picture, 0, 0);
}

function showVideo(stream) {
  const video = element("video"), current = session;
  video.srcObject = stream;
  video.play().catch(() => {}); // fails if the video's source was removed in the meantime
  const seen = (_, frame) => {
    if (session !== current) return;
    video.requestVideoFrameCallback(seen);
    current.seen();
    if (document.body.dataset.transport !== "webrtc") showTransport();
    count(watch.took(video, video.videoWidth, video.videoHeight, frame.presentationTime, frame.rtpTimestamp));
  };
  video.requestVideoFrameCallback(seen);
}

// count records that a picture was shown, and its latency.
function count(latency) {
  pictures++;
  frames.push({ at: performance.now(), latency });
  element("empty").hidden = true;
}

// The transport

const measured = "Latency is the time from drawing a picture to showing it edited, read from the marker in its lower right corner.";
let way; // the protocol that carries the video, "udp" or "tcp"

function showTransport() {
  const video = session !== undefined && session.byVideo();
  const { dataset } = document.body, player = element("video");
  // When the video stops, keep its last picture visible.
  if (!video && dataset.transport === "webrtc" && player.videoWidth) draw(player, player.videoWidth, player.videoHeight);
  dataset.transport = video ? "webrtc" : pictures && session ? "jpeg" : "";
  let how = "";
  if (video) how = `Video over WebRTC${way ? ` by ${way.toUpperCase()}` : ""}.`;
  else if (session && session.started) how = `JPEGs over a WebSocket${session.why ? `, as ${session.why}` : " until WebRTC is connected"}.`;
  note("how", `${how} ${measured}`.trim());
}

async function readWay() {
  way = session && session.room ? await session.room.way().catch(() => undefined) : undefined;
}

// Figures

let frames = []; // arrival and latency of each frame in the last second

function showFigures() {
  showTransport();
  const now = performance.now();
  frames = frames.filter(frame => now - frame.at < 1000);
  const took = frames.map(frame => frame.latency).filter(latency => !isNaN(latency)).sort((a, b) => a - b);
  element("rate").textContent = session && session.started ? frames.length : "–";
  element("latency").textContent = took.length ? Math.round(took[took.length >> 1]) : "–";
}

function showTime(seconds) {
  element("time").textContent = seconds === undefined ? "–" : `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}

// The quota is read every two seconds. After a change it is read sooner, but never twice within a second.

let quotaRead = -Infinity, quotaTimer;

function readQuotaSoon(wait = 1000) {
  clearTimeout(quotaTimer);
  quotaTimer = setTimeout(readQuota, Math.max(wait, quotaRead + 1000 - performance.now()));
}

async function readQuota() {
  const used = key();
  quotaRead = performance.now();
  try {
    if (used && !document.hidden) {
      const { limit, active } = await call("GET", "v1/realtime/quota", used);
      // For a tier without a limit, the service reports a very large number.
      element("quota").textContent = limit < 1e6 ? `${active} of ${limit}` : String(active);
    }
    readQuotaSoon(2000);
  } catch (refusal) {
    element("quota").textContent = "–";
    // If the key was rejected, do not try again until the user changes it.
    if (refusal.status !== 401 && refusal.status !== 403) readQuotaSoon(5000);
  }
}

// Session

async function connect() {
  const mine = ++attempt, used = key(), model = element("model").value;
  complain("");
  if (!used) {
    element("key").focus();
    return complain("Paste an API key first: the server prints one when it starts.");
  }
  show("opening", "Connecting …");
  element("empty").lastElementChild.textContent = "Connecting …";
  try {
    const token = await mint(used, model);
    if (mine !== attempt) return;
    watch = new Stopwatch();
    session = new Session(model, token, element("original"), webrtc, {
      started() {
        if (mine !== attempt) return;
        show("open", "Live");
        showTime(0);
        if (asked) applyPrompt(asked);
        if (image) applyImage();
        readQuotaSoon(200);
      },
      frame(blob, latency) {
        if (mine !== attempt) return;
        showEdited(blob, latency);
      },
      video(stream) { if (mine === attempt) showVideo(stream); },
      message(message) { if (mine === attempt) hear(message); },
      ended(text) { if (mine === attempt) ended(text); else readQuotaSoon(200); },
    });
  } catch (refusal) {
    if (mine === attempt) ended(refusal.message);
  }
}

function ended(text) {
  attempt++;
  session = way = undefined;
  showTransport();
  frames = [];
  pictures = 0;
  shown = arrived; // pictures that are still being decoded will not be shown
  show("closed", "Not connected");
  element("empty").lastElementChild.textContent = "Connect to see it.";
  showTime();
  // The current prompt and image apply to the next session. Errors about them stay visible.
  if (isApplied("prompt-state")) promptWaits();
  if (isApplied("image-state")) imageWaits();
  complain(text);
  readQuotaSoon(200);
}

function disconnect() {
  if (session) session.close();
  ended("");
}

// wait shows the session's position in the queue, if the account has reached its session limit.
function wait(position, size) {
  show("opening", "In line");
  element("empty").lastElementChild.textContent = `The account has reached its limit of sessions. This session is number ${position} of ${size} in the queue and starts automatically.`;
}

function hear(message) {
  switch (message.type) {
  case "queue_position":
    return wait(message.position, message.queue_size);
  case "generation_tick":
    readWay();
    return showTime(message.seconds);
  case "prompt_ack":
    if (message.success) return notePrompt(message);
    return note("prompt-state", message.error, "bad");
  case "set_image_ack":
    if (message.success) return noteImage(message);
    return note("image-state", message.error, "bad");
  case "error":
    // If the server then closes the connection, the reason for that replaces this message.
    return complain(message.error);
  }
}

// The server confirms a prompt. If the engine can, it also lists which parts of the prompt it follows.

function notePrompt({ prompt, understood, notice }) {
  if (!prompt) return note("prompt-state", "No prompt.", "good");
  if (!understood) return note("prompt-state", `Applied: ${prompt}`, "good");
  const said = [understood.length ? `Applied: ${understood.join(", ")}.` : "", notice || ""].join(" ").trim();
  note("prompt-state", notice ? said : `Applied: ${understood.join(", ")}`, notice ? "warn" : "good");
}

function noteImage({ understood, notice }) {
  if (!image) return note("image-state", "No image.", "good");
  const used = !understood || understood.some(part => part.endsWith("reference image"));
  note("image-state", (used ? `In use: ${image.name}` : `Not in use: ${image.name}`) + (notice ? `. ${notice}` : ""), used ? "good" : "warn");
}

// While the user types a prompt, the page shows which parts the engine would follow.

let asking = 0, askTimer;

function foretell() {
  clearTimeout(askTimer);
  const mine = ++asking, prompt = element("prompt").value.trim();
  if (!prompt || prompt === asked) return;
  askTimer = setTimeout(async () => {
    const told = await call("POST", "v1/understand", key(), JSON.stringify({ model: element("model").value, prompt, reference_image: !!image })).catch(() => ({}));
    if (mine !== asking || !told.understood) return;
    const will = told.understood.length ? `Enter applies: ${told.understood.join(", ")}.` : "";
    note("prompt-state", `${will} ${told.notice || ""}`.trim(), told.notice ? "warn" : "");
  }, 250);
}

// Controls

const promptWaits = () => note("prompt-state", asked ? "Applied once you are connected." : "No prompt.");
const imageWaits = () => note("image-state", image ? "In use once you are connected." : "No image.");

function applyPrompt(text) {
  asked = text.trim();
  asking++; // ignores the result of a request that is still running
  clearTimeout(askTimer);
  element("examples").querySelectorAll("button").forEach(chip => chip.setAttribute("aria-pressed", String(chip.textContent === asked)));
  if (!session || !session.say({ type: "prompt", prompt: asked })) promptWaits();
}

function applyImage() {
  if (!session || !session.say({ type: "set_image", image_ref: image ? image.id : null })) imageWaits();
}

let uploads = 0;

async function upload(file) {
  const mine = ++uploads, used = key();
  if (!used) {
    element("image").value = "";
    element("key").focus();
    return note("image-state", "Paste an API key first.", "bad");
  }
  note("image-state", "Uploading …");
  const form = new FormData();
  form.append("file", file);
  form.append("ttl_seconds", "3600");
  try {
    const stored = await call("POST", "v1/files", used, form);
    if (mine !== uploads) return;
    image = { id: stored.id, name: stored.filename };
    URL.revokeObjectURL(element("thumbnail").src);
    element("thumbnail").src = URL.createObjectURL(file);
    element("thumbnail").hidden = false;
    element("image-hint").hidden = true;
    element("clear-image").disabled = false;
    applyImage();
  } catch (refusal) {
    if (mine === uploads) note("image-state", refusal.message, "bad");
  }
  element("image").value = ""; // allows the user to choose the same file again
}

function clearImage() {
  uploads++;
  image = undefined;
  URL.revokeObjectURL(element("thumbnail").src);
  element("thumbnail").removeAttribute("src");
  element("thumbnail").hidden = true;
  element("image-hint").hidden = false;
  element("clear-image").disabled = true;
  applyImage();
}

function stopCamera() {
  if (camera) camera.srcObject.getTracks().forEach(track => track.stop());
  camera = undefined;
}

const chosenSource = () => document.querySelector("input[name=source]:checked").value;

async function changeSource() {
  stopCamera();
  if (chosenSource() !== "camera") return;
  complain("");
  try {
    if (!navigator.mediaDevices) throw new DOMException("", "SecurityError");
    const stream = await navigator.mediaDevices.getUserMedia({ video: { width: 1280, height: 720 } });
    const video = document.createElement("video");
    Object.assign(video, { srcObject: stream, muted: true, playsInline: true });
    if (chosenSource() !== "camera") return stream.getTracks().forEach(track => track.stop());
    stream.getVideoTracks()[0].onended = () => usePattern("The camera has stopped.");
    stopCamera();
    camera = video;
    await video.play();
  } catch (failure) {
    usePattern({
      NotAllowedError: "The browser is blocking the camera. Allow it in the address bar and choose the camera again.",
      NotFoundError: "This device has no camera.",
      NotReadableError: "Another program is using the camera.",
      SecurityError: "Browsers allow the camera only on https and on localhost.",
    }[failure.name] || `Cannot use the camera: ${failure.message}`);
  }
}

function usePattern(why) {
  stopCamera();
  document.querySelector("input[name=source][value=pattern]").checked = true;
  complain(why);
}

element("model").append(...models.map(model => new Option(`${model.id} (${model.kind})`, model.id)));
element("examples").append(...examples.map(example => {
  const chip = document.createElement("button");
  Object.assign(chip, { type: "button", textContent: example });
  chip.setAttribute("aria-pressed", "false");
  chip.addEventListener("click", () => {
    element("prompt").value = example;
    applyPrompt(example);
  });
  return chip;
}));

element("key").addEventListener("change", () => readQuotaSoon(0));
element("model").addEventListener("change", () => {
  if (!session) return;
  disconnect();
  connect();
});
document.querySelectorAll("input[name=source]").forEach(choice => choice.addEventListener("change", changeSource));
element("session").addEventListener("submit", event => {
  event.preventDefault();
  if (document.body.dataset.state === "closed") connect();
  else disconnect();
});
element("prompting").addEventListener("submit", event => {
  event.preventDefault();
  applyPrompt(element("prompt").value);
});
element("prompt").addEventListener("keydown", event => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  element("prompting").requestSubmit();
});
element("prompt").addEventListener("input", foretell);
element("clear-prompt").addEventListener("click", () => {
  element("prompt").value = "";
  applyPrompt("");
});
element("image").addEventListener("change", event => event.target.files[0] && upload(event.target.files[0]));
element("clear-image").addEventListener("click", clearImage);
addEventListener("pagehide", () => session && session.close());

setInterval(showFigures, 250);
readQuotaSoon(0);
requestAnimationFrame(loop);
