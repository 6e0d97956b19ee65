// The service: calls of both its APIs with the key of this tab.

// The page of realtime sessions stores its key under the same name.
const keyName = "cutroom-key";

export const key = () => sessionStorage.getItem(keyName) || "";
export const keep = value => sessionStorage.setItem(keyName, value);
export const forget = () => sessionStorage.removeItem(keyName);

// settings are those of config.json, with absolute URLs.
export let settings;

export async function configure() {
  const answer = await fetch("config.json");
  settings = await answer.json();
  for (const name of ["base_url", "inference_url", "realtime_url", "docs_url"]) {
    if (settings[name]) settings[name] = new URL(settings[name], document.baseURI).href.replace(/\/$/, "");
  }
}

// Refusal is a response other than the expected one; its message is for people.
// Status 0 means no response.
export class Refusal extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export const unreachable = "The service cannot be reached. Check that it runs and that you are connected.";

// explain returns a message for a refusal from its status and body.
export function explain(status, body) {
  if (status === 401) return "The service does not know this key, or it was revoked.";
  const { detail, error } = body || {};
  if (Array.isArray(detail)) {
    return detail.map(one => {
      const field = one.loc.slice(1).join(" › ");
      return (field ? `${field}: ` : "") + one.msg.replace(/^Value error, /, "");
    }).join(" ");
  }
  return detail || error?.message || { 413: "That is larger than the service takes.", 429: "Too many requests. Wait a moment." }[status] || `The service answered with status ${status}.`;
}

// request sends a call and returns the response if it succeeds.
async function request(url, options) {
  let answer;
  try {
    answer = await fetch(url, options);
  } catch (failure) {
    if (failure.name === "AbortError") throw failure;
    throw new Refusal(0, unreachable);
  }
  if (answer.ok) return answer;
  throw new Refusal(answer.status, explain(answer.status, await answer.json().catch(() => undefined)));
}

// media calls the media service; path is like "/v1/files".
export function media(method, path, { body, signal, key: used = key() } = {}) {
  return request(settings.base_url + path, { method, signal, ...encoded(body, { "x-api-key": used }) });
}

// inference calls the gateway.
export function inference(method, path, { body, signal } = {}) {
  return request(settings.inference_url + path, { method, signal, ...encoded(body, { authorization: `Bearer ${key()}` }) });
}

// encoded returns a request body: forms and bytes as they are, anything else as
// JSON.
function encoded(body, headers) {
  if (body === undefined || body instanceof Blob || body instanceof FormData || body instanceof URLSearchParams) return { body, headers };
  return { body: JSON.stringify(body), headers: { ...headers, "content-type": "application/json" } };
}

// events reads the server-sent events of a response (the HTML standard,
// "Server-sent events"): it yields {event, data} until the stream ends.
export async function* events(answer) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "", event = "", data = [];
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
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
