import { md5 } from "@noble/hashes/legacy.js";
import { bytesToHex } from "@noble/hashes/utils.js";
import type { components } from "./schema.js";

/** The reference of a stored file. */
export type StoredFile = components["schemas"]["File"];

/** The Content Credentials of a file and whether they are valid. */
export type CredentialsReport = components["schemas"]["CredentialsReport"];

/** Bytes, or a stored file or its id. `file` of `cutroom/node` returns a Blob for a path, whose bytes stay on disk. */
export type Source = Blob | StoredFile | string;

/** Returns the id of a stored file, or the bytes. */
export function contentOf(source: Source): Blob | string {
  return typeof source === "object" && !(source instanceof Blob) ? source.id : source;
}

/** Returns the name of a file, or "data" without one. */
export const nameOf = (blob: Blob): string => ("name" in blob && typeof blob.name === "string" ? blob.name : "data");

/** Returns the MD5 in hex, which browsers do not provide. */
export async function digestOf(blob: Blob): Promise<string> {
  const digest = md5.create();
  const reader = blob.stream().getReader();
  for (let read = await reader.read(); !read.done; read = await reader.read()) digest.update(read.value);
  return bytesToHex(digest.digest());
}
