// Calls both APIs of the service with the key of this tab.

// The page for realtime sessions stores its key under the same name. All data that is stored for this tab has names
// that begin with the prefix.
const keyName = "cutroom-key", ownPrefix = "cutroom-";

// timeout limits the wait for the head of a response, in milliseconds. startTimeout does so for the first call, which
// is retried.
const timeout = 60_000, startTimeout = 8_000, startTries = 4, readAgain = 2;

export const key = () => sessionStorage.getItem(keyName) || "";

// keep stores the key. If the tab has data of another key, that data is deleted.
export function keep(value) {
  const last = sessionStorage.getItem("cutroom-last-key");
  if (last !== null && last !== print(value)) forget();
  sessionStorage.setItem("cutroom-last-key", print(value));
  sessionStorage.setItem(keyName, value);
}

// print returns a short hash, which distinguishes keys but reveals little about them.
const print = text => Array.from(text).reduce((sum, letter) => (Math.imul(sum, 31) + letter.codePointAt(0)) | 0, 7).toString(36);

export function forget() {
  for (const name of Object.keys(sessionStorage)) if (name.startsWith(ownPrefix)) sessionStorage.removeItem(name);
}

// dropKey removes only the key. After a login with the same key, all other data is still there.
export const dropKey = () => sessionStorage.removeItem(keyName);

// settings is the content of config.json, with absolute URLs.
export let settings;

// configure loads the settings. It tries several times, because the page cannot work without them.
export async function configure() {
  for (let tried = 1; ; tried++) {
    try {
      const answer = await headOf("config.json", {}, startTimeout);
      if (!answer.ok) throw new Refusal(answer.status, `Loading the console's settings returned status ${answer.status}.`);
      settings = await answer.json();
      break;
    } catch (failure) {
      if (tried === startTries) throw failure;
      await new Promise(resolve => setTimeout(resolve, 300 * 2 ** tried));
    }
  }
  for (const name of ["base_url", "inference_url", "realtime_url", "docs_url"]) {
    if (settings[name]) settings[name] = new URL(settings[name], document.baseURI).href.replace(/\/$/, "");
  }
}

// headOf resolves when the head of the response has arrived, and fails if that takes longer than the given
// milliseconds. The body may take any time.
async function headOf(url, { signal, ...options }, within) {
  const controller = new AbortController();
  const timer = setTimeout(() => controller.abort(new Refusal(0, "The service does not respond. Try again in a moment.")), within);
  const end = () => controller.abort(signal.reason);
  if (signal?.aborted) end();
  signal?.addEventListener("abort", end, { once: true });
  try {
    return await fetch(url, { ...options, signal: controller.signal });
  } finally {
    clearTimeout(timer);
  }
}

// Refusal is the error for an unexpected response. Its message is for the user. Status 0 means that there was no
// response. code is the service's error code, if any.
export class Refusal extends Error {
  constructor(status, message, code) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

export const unreachable = "The service is unreachable. Check that it is running and that you are connected.";

// Names to put before messages about a field. The file needs no name.
const names = { data: "", file: "", prompt: "Prompt: ", reference_image: "Reference image: ", seed: "Seed: ", label: "Label: ", max_tokens: "Max tokens: " };

export function explain(status, body) {
  if (status === 401) return "The key is unknown or was revoked.";
  const { detail, error } = body || {};
  if (Array.isArray(detail)) {
    return detail.map(one => {
      const field = one.loc.slice(1).join(" › ");
      return (names[field] ?? (field ? `${field}: ` : "")) + one.msg.replace(/^Value error, /, "");
    }).join(" ");
  }
  return detail || error?.message || { 413: "It is larger than the service allows.", 429: "Too many requests. Wait a moment." }[status] || `The service returned status ${status}.`;
}

let onRefusedKey = () => {};
export const whenKeyIsRefused = listener => { onRefusedKey = listener; };

export function noteStatus(status, used = key()) {
  if (status === 401 && used && used === key()) onRefusedKey();
}

// Browsers abort requests when the network changes, so try again if the request only reads.
async function request(url, options, used) {
  let answer;
  for (let tried = 0; !answer; tried++) {
    try {
      answer = await headOf(url, options, options.timeout || timeout);
    } catch (failure) {
      if (failure.name === "AbortError" || failure instanceof Refusal) throw failure;
      if (options.method !== "GET" || tried === readAgain) throw new Refusal(0, unreachable);
      await new Promise(resolve => setTimeout(resolve, 250 * 2 ** tried));
    }
  }
  if (answer.ok) return answer;
  const body = await answer.json().catch(() => undefined);
  noteStatus(answer.status, used);
  throw new Refusal(answer.status, explain(answer.status, body), body?.error?.code);
}

// media calls the media service. A path is, for example, "/v1/files".
export function media(method, path, { body, signal, key: used = key(), timeout } = {}) {
  return request(settings.base_url + path, { method, signal, timeout, ...encoded(body, { "x-api-key": used }) }, used);
}

// learnRole finds out whether the key is an admin key.
export let admin = false;

export async function learnRole() {
  admin = await media("GET", "/v1/keys").then(() => true, () => false); // false also if the service has no admin keys
}

export function inference(method, path, { body, signal, timeout } = {}) {
  return request(settings.inference_url + path, { method, signal, timeout, ...encoded(body, { authorization: `Bearer ${key()}` }) }, key());
}

// encoded returns the body and headers of a request. Forms and bytes are sent unchanged, and anything else as JSON.
function encoded(body, headers) {
  if (body === undefined || body instanceof Blob || body instanceof FormData || body instanceof URLSearchParams) return { body, headers };
  return { body: JSON.stringify(body), headers: { ...headers, "content-type": "application/json" } };
}

// within resolves or rejects as the promise does, but rejects after time milliseconds.
function within(promise, time) {
  let timer;
  const late = new Promise((_, reject) => { timer = setTimeout(() => reject(new TypeError("The connection has stalled.")), time); });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

// chunks yields a response's body as it arrives. If nothing arrives for the time quiet, in milliseconds, it throws a
// TypeError, as after any other lost connection. A connection may be lost without an error, for example while the computer sleeps.
export async function* chunks(body, quiet) {
  const reader = body.getReader();
  try {
    for (;;) {
      const { value, done } = await within(reader.read(), quiet);
      if (done) return;
      yield value;
    }
  } finally {
    // Close the connection if the stream was not read to its end.
    reader.cancel().catch(() => {});
  }
}

// events yields server-sent events as {event, data} until the stream ends (see "Server-sent events" in the HTML
// standard). quiet is the same as for chunks.
export async function* events(answer, quiet) {
  let rest = "", event = "", data = [];
  for await (const value of chunks(answer.body.pipeThrough(new TextDecoderStream()), quiet)) {
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines.map(line => line.replace(/\r$/, ""))) {
      if (line === "") {
        if (data.length) yield { event, data: data.join("\n") };
        event = "";
        data = [];
      } else if (line.startsWith("data:")) data.push(line.slice(5).replace(/^ /, ""));
      else if (line.startsWith("event:")) event = line.slice(6).trim();
    }
  }
}
