import { check } from "./errors.js";
import type { components } from "./schema.js";
import { contentOf, type CredentialsReport, digestOf, nameOf, type Source, type StoredFile } from "./sources.js";
import type { Service } from "./transport.js";

/** Files larger than this size, in bytes, are uploaded directly to a signed URL. */
export const large = 64 * 2 ** 20;

export interface UploadOptions {
  /** How long the service keeps the file: a number of seconds, or until it is deleted. */
  ttl?: number | "persistent";
  filename?: string;
  signal?: AbortSignal;
}

/** The account's stored files. */
export class Files {
  constructor(private readonly service: Service, private readonly fetch: typeof globalThis.fetch) {}

  /**
   * Stores a file and returns its reference. Files that are large, or too large for an upload form of this service,
   * are uploaded to a signed URL.
   */
  async upload(source: Source, options: UploadOptions = {}): Promise<StoredFile> {
    const content = contentOf(source);
    if (typeof content === "string") return this.get(content);
    if (content.size > large) return this.announce(content, options);
    const form = new FormData();
    if (options.ttl !== undefined) form.append("ttl_seconds", String(options.ttl));
    form.append("file", content, options.filename ?? nameOf(content));
    const signal = options.signal ?? null;
    const response = await this.service.send("/v1/files", { method: "POST", body: form, signal });
    if (response.status === 413) return this.announce(content, options);
    return (await check(response)).json() as Promise<StoredFile>;
  }

  /** Stores a file by uploading it to a signed URL. */
  async announce(content: Blob, options: UploadOptions = {}): Promise<StoredFile> {
    const signal = options.signal ?? null;
    const wanted = {
      filename: options.filename ?? nameOf(content),
      mime_type: content.type.split(";")[0] || "application/octet-stream",
      size_bytes: content.size,
      md5: await digestOf(content),
      ...(options.ttl === undefined ? {} : { ttl_seconds: options.ttl }),
    };
    const answer = await check(await this.service.send("/v1/files", {
      method: "POST", body: JSON.stringify(wanted), headers: { "Content-Type": "application/json" }, signal,
    }));
    const { id, upload } = (await answer.json()) as components["schemas"]["Announced"];
    // The URL contains a signature, so the request does not need the key.
    await check(await this.fetch(upload.url, { method: "PUT", headers: upload.headers, body: content, signal }));
    return this.get(id);
  }

  async get(id: string): Promise<StoredFile> {
    return (await check(await this.service.send(`/v1/files/${encodeURIComponent(id)}`))).json() as Promise<StoredFile>;
  }

  async delete(id: string): Promise<void> {
    await check(await this.service.send(`/v1/files/${encodeURIComponent(id)}`, { method: "DELETE" }));
  }

  /**
   * Returns a small JPEG of an image or a video. Throws an `APIError` with status 404 if the file has no thumbnail. In
   * AWS, a file gets its thumbnail when a job first uses it.
   */
  async thumbnail(id: string, options: { signal?: AbortSignal } = {}): Promise<Blob> {
    return (await check(await this.service.send(`/v1/uploads/${encodeURIComponent(id)}/thumbnail`, options))).blob();
  }

  /**
   * Verifies the Content Credentials of an image or a video. If the file was changed, the report says so. Throws an
   * `APIError` with status 404 if the service lacks the library for Content Credentials.
   */
  async credentials(id: string, options: { signal?: AbortSignal } = {}): Promise<CredentialsReport> {
    const answer = await check(await this.service.send(`/v1/uploads/${encodeURIComponent(id)}/credentials`, options));
    return answer.json() as Promise<CredentialsReport>;
  }

  /** Yields the files, newest first. Further pages are requested as needed. */
  list(): AsyncGenerator<StoredFile, void> {
    return pages<StoredFile>(this.service, "/v1/files", "files", new URLSearchParams());
  }
}

/** Yields the items of a paged list. */
export async function* pages<T>(service: Service, path: string, items: string,
  query: URLSearchParams): AsyncGenerator<T, void> {
  for (;;) {
    const answer = await check(await service.send(`${path}?${query}`));
    const page = (await answer.json()) as Record<string, T[]> & { next_cursor: string | null };
    yield* page[items] ?? [];
    // A page may be empty even though more pages follow.
    if (page.next_cursor === null) return;
    query.set("cursor", page.next_cursor);
  }
}
