// The bytes of stored files, for those that look at them.

import { media } from "./service.js";

// largest is what is fetched only to be looked at, in bytes.
const largest = 50e6;

const urls = new Map(); // promises of URLs within the page, by the file's id

// urlOf gives a URL within the page for a picture or a video; undefined where it is
// neither, is too large, or cannot be had.
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

// forgetURL lets go of a file that is gone.
export async function forgetURL(file) {
  const url = await urls.get(file.id);
  urls.delete(file.id);
  if (url) URL.revokeObjectURL(url);
}
