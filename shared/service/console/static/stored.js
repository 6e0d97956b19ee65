// The bytes of stored files, for previews.

import { media } from "./service.js";

// largest is the size limit of what is fetched for a preview, in bytes.
const largest = 50e6;

const urls = new Map(); // promises of object URLs, by the file's id

// urlOf returns an object URL for a picture or a video, undefined if it is neither,
// is too large, or cannot be fetched.
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

// forgetURL releases the URL of a deleted file.
export async function forgetURL(file) {
  const url = await urls.get(file.id);
  urls.delete(file.id);
  if (url) URL.revokeObjectURL(url);
}
