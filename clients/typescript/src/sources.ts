import { md5 } from "@noble/hashes/legacy.js";
import { bytesToHex } from "@noble/hashes/utils.js";
import type { components } from "./schema.js";

/** The reference of a stored file. */
export type StoredFile = components["schemas"]["File"];

/** What the Content Credentials of a file say, and whether that holds. */
export type CredentialsReport = components["schemas"]["CredentialsReport"];

/** Bytes, a stored file or its id. `cutroom/node` makes a Blob of a path, whose bytes stay on the disk. */
export type Source = Blob | StoredFile | string;

/** The id of a stored file, or the bytes. */
export function contentOf(source: Source): Blob | string {
  return typeof source === "object" && !(source instanceof Blob) ? source.id : source;
}

/** The name of a file, if it has one. */
export const nameOf = (blob: Blob): string => ("name" in blob && typeof blob.name === "string" ? blob.name : "data");

/** The MD5 in hex. Browsers have none of their own. */
export async function digestOf(blob: Blob): Promise<string> {
  const digest = md5.create();
  const reader = blob.stream().getReader();
  for (let read = await reader.read(); !read.done; read = await reader.read()) digest.update(read.value);
  return bytesToHex(digest.digest());
}
