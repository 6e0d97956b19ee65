import { ConnectionError, CutroomError, retryAfter } from "./errors.js";

/** The maximum number of attempts for a request. */
const tries = 4;
/** The pause before the first retry (each later pause is twice as long), and the longest pause, in seconds. */
const backoff = 0.5, longest = 30;

const idempotencyKey = "Idempotency-Key";

export const sleep = (seconds: number, signal?: AbortSignal | null): Promise<void> =>
  new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const stop = (): void => {
      clearTimeout(timer);
      reject(signal?.reason as Error);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, seconds * 1000);
    signal?.addEventListener("abort", stop, { once: true });
  });

/** Sends requests with the key to one service. Retries a request if a retry can help and is safe. */
export class Service {
  readonly #key: readonly [name: string, value: string] | undefined;
  readonly #fetch: typeof globalThis.fetch;

  constructor(
    readonly url: string,
    key: readonly [name: string, value: string] | undefined,
    fetch: typeof globalThis.fetch,
    /** Whether requests that create something carry an Idempotency-Key. A retry then creates nothing twice. */
    readonly idempotent: boolean,
  ) {
    this.#key = key;
    this.#fetch = fetch;
  }

  /** Sends a request to a path of the service. The body must be reusable, because a retry sends it again. */
  send(path: string, init: RequestInit = {}): Promise<Response> {
    const headers = new Headers(init.headers);
    this.#prepare(init.method ?? "GET", headers);
    return this.#repeat(init.method ?? "GET", headers, init.signal,
      () => this.#fetch(this.url + path, { ...init, headers, redirect: "manual" }));
  }

  /** Sends a request that the generated client has built. */
  readonly fetch = (request: Request): Promise<Response> => {
    const headers = new Headers(request.headers);
    this.#prepare(request.method, headers);
    return this.#repeat(request.method, headers, request.signal,
      () => this.#fetch(new Request(request.clone(), { headers, redirect: "manual" })));
  };

  #prepare(method: string, headers: Headers): void {
    if (this.#key) headers.set(...this.#key);
    if (this.idempotent && method === "POST" && !headers.has(idempotencyKey)) {
      headers.set(idempotencyKey, crypto.randomUUID());
    }
  }

  async #repeat(method: string, headers: Headers, signal: AbortSignal | null | undefined,
    once: () => Promise<Response>): Promise<Response> {
    const repeatable = method !== "POST" || headers.has(idempotencyKey);
    for (let left = tries - 1; ; left--) {
      let pause = Math.min(backoff * 2 ** (tries - 1 - left), longest);
      try {
        const response = await this.#follow(await once(), headers, signal);
        if (left === 0 || !worthwhile(response, headers, repeatable)) return response;
        pause = Math.max(pause, retryAfter(response));
        await response.body?.cancel();
      } catch (error) {
        if (signal?.aborted || error instanceof CutroomError) throw error;
        if (left === 0 || !repeatable) throw new ConnectionError(`cannot connect to ${this.url}`, { cause: error });
      }
      await sleep(pause, signal);
    }
  }

  /** Follows a redirect without sending the key, because it may lead to a signed URL elsewhere. */
  async #follow(response: Response, headers: Headers, signal?: AbortSignal | null): Promise<Response> {
    if (response.type === "opaqueredirect") {
      throw new CutroomError("the result is at a URL that browsers hide from scripts: use jobs.contentURL");
    }
    const location = response.headers.get("location");
    if (response.status < 300 || response.status > 399 || response.status === 304 || !location) return response;
    const kept = new Headers(headers);
    if (this.#key) kept.delete(this.#key[0]);
    return this.#fetch(new URL(location, response.url || this.url), { headers: kept, signal: signal ?? null });
  }
}

/** Reports whether a request that received this response should be retried. */
function worthwhile(response: Response, headers: Headers, repeatable: boolean): boolean {
  const wait = retryAfter(response);
  if (wait > longest) return false;
  switch (response.status) {
    case 429: return true; // the service has not processed the request
    case 409: return wait > 0 && headers.has(idempotencyKey); // an earlier attempt of it is still running
    case 502: case 503: case 504: return repeatable;
    default: return false;
  }
}
