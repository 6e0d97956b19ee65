import { md5 } from "@noble/hashes/legacy.js";
import { bytesToHex } from "@noble/hashes/utils.js";
import type { components } from "./schema.js";

/** A reference to a stored file. */
export type StoredFile = components["schemas"]["File"];

/** The Content Credentials of a file and whether they are valid. */
export type CredentialsReport = components["schemas"]["CredentialsReport"];

/** Bytes, a stored file, or its id. `file` in `cutroom/node` returns a Blob for a path; its bytes stay on disk. */
export type Source = Blob | StoredFile | string;

/** Returns the id of a stored file, or the bytes of another source. */
export function contentOf(source: Source): Blob | string {
  return typeof source === "object" && !(source instanceof Blob) ? source.id : source;
}

/** Returns a file's name, or "data" if it has none. */
export const nameOf = (blob: Blob): string => ("name" in blob && typeof blob.name === "string" ? blob.name : "data");

/** Returns the MD5 in hex. Browsers have no function for it. */
export async function digestOf(blob: Blob): Promise<string> {
  const digest = md5.create();
  const reader = blob.stream().getReader();
  for (let read = await reader.read(); !read.done; read = await reader.read()) digest.update(read.value);
  return bytesToHex(digest.digest());
}
