import { APIError, check, ConnectionError, JobFailed } from "./errors.js";
import * as events from "./events.js";
import { large, pages, type Files } from "./files.js";
import type { components } from "./schema.js";
import { contentOf, type CredentialsReport, nameOf, type Source } from "./sources.js";
import { sleep, type Service } from "./transport.js";

export type Job = components["schemas"]["Job"];
export type Share = components["schemas"]["Share"];
export type JobCreated = components["schemas"]["JobCreated"];
/** The size of a picture of a result: "poster" is the larger one, which a player shows before it plays. */
export type PictureSize = "thumbnail" | "poster";

/** The fields of an edit. docs/contract/media.md#forms lists the fields of each model. */
export interface Edit {
  /** The video or image to edit; absent for text to video. */
  data?: Source;
  prompt?: string;
  reference_image?: Source;
  seed?: number;
  resolution?: string;
  orientation?: string;
  enhance_prompt?: boolean;
  self_anchor?: boolean;
  webhook_url?: string;
  webhook_events?: "completed" | "failed" | "completed,failed";
  start_within?: number;
  result_ttl?: number;
  priority?: "normal" | "low";
}

/** After this many consecutive failures, an event stream is given up and the job is polled. */
const breaks = 3;
/** The pause before a stream is opened again, and the shortest and longest pause between polls, in seconds. */
const reconnect = 1, shortest = 0.5, longestPoll = 3;
/** How long the service keeps a file that was stored for one job, in seconds. */
const inputTTL = 3600;

interface Cancellable {
  signal?: AbortSignal;
}

/** The account's jobs. */
export class Jobs {
  constructor(private readonly service: Service, private readonly files: Files) {}

  /**
   * Submits an edit as a job. Large inputs are stored as files first. No second job is created when a broken connection
   * is retried, or when the call is repeated with the same `idempotencyKey`.
   */
  async submit(model: string, edit: Edit,
    options: Cancellable & { idempotencyKey?: string } = {}): Promise<JobCreated> {
    const fields = new Map<string, string | Blob>();
    // Small form fields precede the files, so that the service can reject an invalid request early.
    const { data, reference_image, ...texts } = edit;
    for (const [name, value] of Object.entries(texts)) if (value !== undefined) fields.set(name, String(value));
    for (const [name, source] of Object.entries({ reference_image, data })) {
      if (source !== undefined) fields.set(name, contentOf(source));
    }
    await this.#store(fields, options, (blob) => blob.size > large);
    let response = await this.#post(model, fields, options);
    if (response.status === 413) {
      await this.#store(fields, options, () => true);
      response = await this.#post(model, fields, options);
    }
    return (await check(response)).json() as Promise<JobCreated>;
  }

  /** Stores the blobs that `wanted` selects as files, and replaces them with the files' ids. */
  async #store(fields: Map<string, string | Blob>, options: Cancellable,
    wanted: (blob: Blob) => boolean): Promise<void> {
    for (const [name, value] of fields) {
      if (value instanceof Blob && wanted(value)) {
        fields.set(name, (await this.files.announce(value, { ...options, ttl: inputTTL })).id);
      }
    }
  }

  #post(model: string, fields: Map<string, string | Blob>,
    options: Cancellable & { idempotencyKey?: string }): Promise<Response> {
    const form = new FormData();
    for (const [name, value] of fields) {
      if (value instanceof Blob) form.append(name, value, nameOf(value));
      else form.append(name, value);
    }
    const headers: HeadersInit = options.idempotencyKey ? { "Idempotency-Key": options.idempotencyKey } : {};
    const path = `/v1/jobs/${encodeURIComponent(model)}`;
    return this.service.send(path, { method: "POST", body: form, headers, signal: options.signal ?? null });
  }

  async get(id: string, options: Cancellable = {}): Promise<Job> {
    return (await check(await this.service.send(pathOf(id), options))).json() as Promise<Job>;
  }

  /** Cancels a job that has not ended. */
  async cancel(id: string): Promise<Job> {
    return (await check(await this.service.send(pathOf(id), { method: "DELETE" }))).json() as Promise<Job>;
  }

  /** Deletes a job that has ended, with its result and thumbnails. Requires a permanent key. */
  async delete(id: string): Promise<void> {
    await check(await this.service.send(`${pathOf(id)}?purge=true`, { method: "DELETE" }));
  }

  /**
   * Creates a link to the result of a completed job, which works without a key. The link expires after `expiresIn`
   * seconds, or with the result. Requires a permanent key.
   */
  async share(id: string, options: Cancellable & { expiresIn?: number } = {}): Promise<Share> {
    const body = JSON.stringify(options.expiresIn === undefined ? {} : { expires_in: options.expiresIn });
    const headers = { "Content-Type": "application/json" };
    const signal = options.signal ?? null;
    const answer = await this.service.send(`${pathOf(id)}/shares`, { method: "POST", body, headers, signal });
    return (await check(answer)).json() as Promise<Share>;
  }

  /** Returns a small JPEG of a completed job's result or input. For a video, "poster" returns a larger one. */
  async thumbnail(
    id: string, options: Cancellable & { of?: "result" | "input"; size?: PictureSize } = {},
  ): Promise<Blob> {
    const { of = "result", size = "thumbnail", ...signal } = options;
    return (await check(await this.service.send(`${pathOf(id)}/thumbnail?of=${of}&size=${size}`, signal))).blob();
  }

  /** Returns a small JPEG preview of a running job's result. Some engines make no previews. */
  async preview(id: string, options: Cancellable = {}): Promise<Blob> {
    return (await check(await this.service.send(`${pathOf(id)}/preview`, options))).blob();
  }

  /**
   * Verifies the Content Credentials of a completed job's result. If the result was changed, the report says so. Throws
   * an `APIError` with status 404 if the service lacks the library for Content Credentials.
   */
  async credentials(id: string, options: Cancellable = {}): Promise<CredentialsReport> {
    const answer = await check(await this.service.send(`${pathOf(id)}/credentials`, options));
    return answer.json() as Promise<CredentialsReport>;
  }

  /**
   * Returns the URL of a thumbnail for `<img src>`, or of a poster for `<video poster>`. Pass a client token, never a
   * permanent key.
   */
  thumbnailURL(id: string, token: string, of: "result" | "input" = "result", size: PictureSize = "thumbnail"): string {
    return `${this.service.url}${pathOf(id)}/thumbnail?of=${of}&size=${size}&api_key=${encodeURIComponent(token)}`;
  }

  /**
   * Yields the jobs of the last 7 days, newest first. Further pages are requested as needed. `search` contains words of
   * the prompt, of an input's name or of the job's id.
   */
  list(filter: { status?: Job["status"]; model?: string; search?: string } = {}): AsyncGenerator<Job, void> {
    const { search, ...query } = filter;
    const words = search === undefined ? {} : { q: search };
    return pages<Job>(this.service, "/v1/jobs", "jobs", new URLSearchParams({ ...query, ...words }));
  }

  /** Yields the job, and again after each change, until the job or the stream ends. */
  async *events(id: string, options: Cancellable = {}): AsyncGenerator<Job, void> {
    const headers = { Accept: "text/event-stream" };
    const response = await check(await this.service.send(`${pathOf(id)}/events`, { ...options, headers }));
    if (!response.body) return;
    try {
      for await (const event of events.read(response.body)) {
        if (event.name === "job") yield JSON.parse(event.data) as Job;
      }
    } catch (error) {
      if (options.signal?.aborted) throw error;
      throw new ConnectionError("the event stream of the job was interrupted", { cause: error });
    }
  }

  /**
   * Waits for a job to complete and returns it. Follows the job's events, or polls if the service has no events. Throws
   * `JobFailed` if the job fails.
   */
  async wait(id: string, options: Cancellable & { onChange?: (job: Job) => void } = {}): Promise<Job> {
    const { onChange, ...signal } = options;
    for await (const job of this.#changes(id, signal)) {
      onChange?.(job);
      if (job.status === "failed") throw new JobFailed(job);
      if (job.status === "completed") return job;
    }
    throw new Error("unreachable");
  }

  async *#changes(id: string, options: Cancellable): AsyncGenerator<Job, void> {
    for (let broken = 0; broken < breaks; broken++) {
      try {
        for await (const job of this.events(id, options)) {
          broken = 0;
          yield job;
        }
      } catch (error) {
        if (error instanceof APIError) break; // the service has no events, or no such job: polling finds out
        if (!(error instanceof ConnectionError)) throw error;
      }
      await sleep(reconnect, options.signal);
    }
    for (let pause = shortest; ; pause = Math.min(pause * 1.5, longestPoll)) {
      yield await this.get(id, options);
      await sleep(pause, options.signal);
    }
  }

  /** Returns the result of a completed job as a response with a streaming body. */
  async content(id: string, options: Cancellable & { headers?: HeadersInit } = {}): Promise<Response> {
    return check(await this.service.send(`${pathOf(id)}/content`, options));
  }

  /** Returns the URL of a result for `<video src>` and `<img src>`. Pass a client token, never a permanent key. */
  contentURL(id: string, token: string): string {
    return `${this.service.url}${pathOf(id)}/content?api_key=${encodeURIComponent(token)}`;
  }
}

const pathOf = (id: string): string => `/v1/jobs/${encodeURIComponent(id)}`;
