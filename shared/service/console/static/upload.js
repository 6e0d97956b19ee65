// Uploads files with progress, through a form or to a signed URL if the file is too large for a form.

import { digest } from "./md5.js";
import { explain, key, media, noteStatus, Refusal, settings } from "./service.js";

let sending = 0; // the number of uploads in progress

export const uploading = () => sending > 0;

let released = false; // whether the user may leave the page during an upload

// release lets the user leave the page even during an upload.
export const release = () => { released = true; };

// If the user leaves the page, an upload is lost, so the browser asks first.
addEventListener("beforeunload", event => uploading() && !released && event.preventDefault());

// quiet is how long an upload may stall, and how long its response may take, in milliseconds.
const quiet = 120_000;

// send uploads a body and resolves to the JSON of the response. progress is called with the sent fraction (0 to 1),
// which fetch cannot report.
export function send(method, url, headers, body, { progress, signal }) {
  sending++;
  let timer;
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    const cut = () => reject(new Refusal(0, "The upload was interrupted. Nothing on this page was lost; try again."));
    request.open(method, url);
    request.responseType = "json";
    for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
    const alive = () => {
      clearTimeout(timer);
      timer = setTimeout(() => {
        cut();
        request.abort();
      }, quiet);
    };
    request.upload.onprogress = event => {
      alive();
      progress(event.total ? event.loaded / event.total : 0);
    };
    request.upload.onload = alive;
    request.onerror = request.ontimeout = cut;
    request.onabort = () => reject(new DOMException("The upload was cancelled.", "AbortError"));
    request.onload = () => {
      if (request.status >= 200 && request.status < 300) return resolve(request.response);
      noteStatus(request.status, headers["x-api-key"]);
      reject(new Refusal(request.status, explain(request.status, request.response), request.response?.error?.code));
    };
    if (signal.aborted) return request.onabort();
    signal.addEventListener("abort", () => request.abort(), { once: true });
    alive();
    request.send(body);
  }).finally(() => {
    clearTimeout(timer);
    sending--;
  });
}

// store uploads a file and resolves to its reference. lifetime, if any, is a number of seconds or "persistent". While
// the file is read for its checksum, reading(share) is called instead of progress.
export async function store(file, { reading = () => {}, ...watch }, lifetime) {
  if (file.size <= settings.max_upload) {
    const form = new FormData();
    if (lifetime) form.append("ttl_seconds", lifetime);
    form.append("file", file, file.name);
    return send("POST", `${settings.base_url}/v1/files`, { "x-api-key": key() }, form, watch);
  }
  const md5 = await digest(file, watch.signal, reading);
  const answer = await media("POST", "/v1/files", { body: { filename: file.name, mime_type: file.type || "application/octet-stream", size_bytes: file.size, md5, ...(lifetime ? { ttl_seconds: +lifetime || lifetime } : {}) }, signal: watch.signal });
  const { upload, ...reference } = await answer.json();
  await send(upload.method, upload.url, upload.headers, file, watch);
  return reference;
}
