import createClient, { type Client } from "openapi-fetch";
import { check } from "./errors.js";
import { Files } from "./files.js";
import { Jobs } from "./jobs.js";
import type { components, paths } from "./schema.js";
import { Service } from "./transport.js";

/** Missing options are read from the environment variables that the command line also uses, if there are any. */
export interface CutroomOptions {
  /** CUTROOM_URL. The default is `cutroom dev` on this machine. */
  url?: string;
  /** CUTROOM_INFERENCE_URL. */
  inferenceURL?: string;
  /** CUTROOM_API_KEY: a permanent key, or a client token in a browser. */
  apiKey?: string;
  fetch?: typeof globalThis.fetch;
}

export interface TokenOptions {
  /** How long the token is valid, in seconds. The default is 60. */
  expiresIn?: number;
  /** The models and the origins for which the token is valid. The default is all. */
  models?: string[];
  origins?: string[];
}

const local = "http://127.0.0.1:8080";

/** A client for the media service and the inference gateway. */
export class Cutroom {
  readonly url: string;
  readonly inferenceURL: string;
  readonly jobs: Jobs;
  readonly files: Files;
  /** All calls of the media service, typed by its OpenAPI document: `media.GET("/v1/realtime/quota")`. */
  readonly media: Client<paths>;
  /** All calls of the gateway: `inference.GET("/v1/usage")`. */
  readonly inference: Client<paths>;
  readonly #service: Service;

  constructor(options: CutroomOptions = {}) {
    const environment = (globalThis as { process?: { env?: Record<string, string | undefined> } }).process?.env ?? {};
    const fetch = options.fetch ?? globalThis.fetch.bind(globalThis);
    this.url = trimmed(options.url ?? environment["CUTROOM_URL"] ?? local);
    this.inferenceURL = trimmed(options.inferenceURL ?? environment["CUTROOM_INFERENCE_URL"] ??
      (this.url === local ? local.replace(":8080", ":8081") : this.url));
    const key = options.apiKey ?? environment["CUTROOM_API_KEY"];
    if (!key) throw new TypeError("missing API key: pass apiKey or set CUTROOM_API_KEY");
    this.#service = new Service(this.url, ["x-api-key", key], fetch, true);
    const gateway = new Service(this.inferenceURL, ["Authorization", `Bearer ${key}`], fetch, false);
    this.files = new Files(this.#service, fetch);
    this.jobs = new Jobs(this.#service, this.files);
    this.media = createClient<paths>({ baseUrl: this.url, fetch: this.#service.fetch });
    this.inference = createClient<paths>({ baseUrl: this.inferenceURL, fetch: gateway.fetch });
  }

  /** Creates a client token for a browser or an app. */
  async createToken(options: TokenOptions = {}): Promise<components["schemas"]["Token"]> {
    const wanted = { expiresIn: options.expiresIn, allowedModels: options.models, allowedOrigins: options.origins };
    const answer = await check(await this.#service.send("/v1/client/tokens", {
      method: "POST", body: JSON.stringify(wanted), headers: { "Content-Type": "application/json" },
    }));
    return answer.json() as Promise<components["schemas"]["Token"]>;
  }
}

const trimmed = (url: string): string => url.replace(/\/+$/, "");
