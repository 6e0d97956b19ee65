// Fetches the bytes of stored files for previews.

import { media } from "./service.js";
import { store } from "./upload.js";

// in bytes
const largest = 50e6;

const urls = new Map(); // promises of object URLs, by file id

// urlOf resolves to an object URL for a picture or a video, or to undefined if the file is neither, is too large, or
// cannot be fetched.
export function urlOf(file) {
  if (!/^(image|video)\//.test(file.mime_type) || file.size_bytes > largest) return Promise.resolve(undefined);
  if (!urls.has(file.id)) {
    urls.set(file.id, media("GET", `/v1/uploads/${file.id}`).then(async answer => URL.createObjectURL(await answer.blob())).catch(() => {
      urls.delete(file.id);
      return undefined;
    }));
  }
  return urls.get(file.id);
}

const small = new Map(); // promises of object URLs for small pictures, by file id

export function smallOf(file) {
  if (!/^(image|video)\//.test(file.mime_type)) return Promise.resolve(undefined);
  if (!small.has(file.id)) {
    small.set(file.id, media("GET", `/v1/uploads/${file.id}/thumbnail`).then(async answer => URL.createObjectURL(await answer.blob())).catch(() => {
      small.delete(file.id); // the picture may exist the next time
      return undefined;
    }));
  }
  return small.get(file.id);
}

const depicted = new WeakMap(); // promises of object URLs for small pictures, by local file

// depict resolves to the service's picture of a local file that the browser cannot show. The service stores the file
// only until it has made the picture.
export function depict(file) {
  if (!(file instanceof File) || file.size > largest) return Promise.resolve(undefined);
  if (!depicted.has(file)) depicted.set(file, pictureBy(file).catch(() => undefined));
  return depicted.get(file);
}

async function pictureBy(file) {
  const stored = await store(file, { progress() {}, signal: AbortSignal.timeout(60_000) }, 600);
  const url = await smallOf(stored);
  await media("DELETE", `/v1/files/${stored.id}`).catch(() => {});
  return url;
}

export async function forgetURL(file) {
  for (const kept of [urls, small]) {
    const url = await kept.get(file.id);
    kept.delete(file.id);
    if (url) URL.revokeObjectURL(url);
  }
}
