// Calls both APIs of the service with the key of this tab.

// The page of realtime sessions stores its key under the same name. The names of all data kept
// for the tab start with it.
const keyName = "cutroom-key", ownPrefix = "cutroom-";

// timeout limits the wait for the head of a response, in milliseconds; startTimeout limits it for
// the first call, which is retried.
const timeout = 60_000, startTimeout = 8_000, startTries = 4, readAgain = 2;

export const key = () => sessionStorage.getItem(keyName) || "";

// Another key's data in the tab is deleted.
export function keep(value) {
  const last = sessionStorage.getItem("cutroom-last-key");
  if (last !== null && last !== print(value)) forget();
  sessionStorage.setItem("cutroom-last-key", print(value));
  sessionStorage.setItem(keyName, value);
}

// print distinguishes keys but reveals little about them.
const print = text => Array.from(text).reduce((sum, letter) => (Math.imul(sum, 31) + letter.codePointAt(0)) | 0, 7).toString(36);

export function forget() {
  for (const name of Object.keys(sessionStorage)) if (name.startsWith(ownPrefix)) sessionStorage.removeItem(name);
}

// After a login with the same key all other data is still there.
export const dropKey = () => sessionStorage.removeItem(keyName);

// settings holds the content of config.json, with absolute URLs.
export let settings;

// The page needs the settings, so this retries.
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

// headOf resolves once the head of the response arrives, within a time in milliseconds. The time
// for the body is not limited.
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

// Refusal is an unexpected response. Its message is for people. Status 0 means no response. code
// is the service's error code, if any.
export class Refusal extends Error {
  constructor(status, message, code) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

export const unreachable = "The service is unreachable. Check that it is running and that you are connected.";

// A message about the file itself needs no name before it.
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

// Browsers abort requests when the network changes, so reads are retried.
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

// media calls the media service; path is like "/v1/files".
export function media(method, path, { body, signal, key: used = key(), timeout } = {}) {
  return request(settings.base_url + path, { method, signal, timeout, ...encoded(body, { "x-api-key": used }) }, used);
}

// learnRole sets admin.
export let admin = false;

export async function learnRole() {
  admin = await media("GET", "/v1/keys").then(() => true, () => false); // false also for a service without admin keys
}

export function inference(method, path, { body, signal, timeout } = {}) {
  return request(settings.inference_url + path, { method, signal, timeout, ...encoded(body, { authorization: `Bearer ${key()}` }) }, key());
}

// Forms and bytes are unchanged, anything else becomes JSON.
function encoded(body, headers) {
  if (body === undefined || body instanceof Blob || body instanceof FormData || body instanceof URLSearchParams) return { body, headers };
  return { body: JSON.stringify(body), headers: { ...headers, "content-type": "application/json" } };
}

// within settles like the promise, or rejects after time milliseconds.
function within(promise, time) {
  let timer;
  const late = new Promise((_, reject) => { timer = setTimeout(() => reject(new TypeError("The connection has stalled.")), time); });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

// chunks yields the body of a response as it arrives. If nothing arrives for quiet milliseconds, it ends with a
// TypeError, as for any other lost connection: a connection may be lost without notice, for example during sleep.
export async function* chunks(body, quiet) {
  const reader = body.getReader();
  try {
    for (;;) {
      const { value, done } = await within(reader.read(), quiet);
      if (done) return;
      yield value;
    }
  } finally {
    // Cancelling closes a stream that was not read to its end.
    reader.cancel().catch(() => {});
  }
}

// events reads server-sent events (the HTML standard, "Server-sent events"): it yields {event,
// data} until the stream ends. quiet is as for chunks.
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
