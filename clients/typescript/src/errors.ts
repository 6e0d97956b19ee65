import type { components } from "./schema.js";

/** Any error of this package. */
export class CutroomError extends Error {
  override name = "CutroomError";
}

/** What is wrong with one field of a request. */
export interface FieldError {
  loc: string[];
  msg: string;
  type: string;
}

/** The answer of a service that refuses a call. */
export class APIError extends CutroomError {
  override name = "APIError";
  constructor(
    message: string,
    readonly status: number,
    /** Identifies the call in the service's log. */
    readonly requestID: string,
    /** How long the service asks callers to wait, in seconds; 0 if it does not. */
    readonly retryAfter: number,
    /** What is wrong with the request, field by field (status 422). */
    readonly fields: FieldError[] = [],
    /** The gateway's error code, such as "model_not_found". */
    readonly code: string = "",
  ) {
    super(message);
  }

  /** Reads a refusal. A proxy in between may answer with anything; the status alone counts then. */
  static async of(response: Response): Promise<APIError> {
    const body: unknown = await response.json().catch(() => null);
    const { detail, error } = (typeof body === "object" && body !== null ? body : {}) as Refusal;
    const fields = Array.isArray(detail) ? detail : [];
    const message =
      typeof detail === "string" ? detail
      : fields.length > 0 ? fields.map((field) => `${field.loc.slice(1).join(".")}: ${field.msg}`).join("; ")
      : (error?.message ?? `the server returned status ${response.status}`);
    return new APIError(message, response.status, response.headers.get("x-request-id") ?? "", retryAfter(response),
      fields, error?.code ?? "");
  }
}

interface Refusal {
  detail?: string | FieldError[];
  error?: { message?: string; code?: string | null };
}

/** The service could not be reached, or the connection broke. */
export class ConnectionError extends CutroomError {
  override name = "ConnectionError";
}

/** A job that was awaited has failed; `job.error` says why. */
export class JobFailed extends CutroomError {
  override name = "JobFailed";
  constructor(readonly job: components["schemas"]["Job"]) {
    super(`the job ${job.job_id} has failed (${job.error?.code}): ${job.error?.message}`);
  }
}

/** The seconds of Retry-After; 0 if it is absent or has another form. */
export function retryAfter(response: Response): number {
  const seconds = Number(response.headers.get("retry-after") ?? 0);
  return seconds > 0 ? seconds : 0;
}

/** The answer, if it is a success. */
export async function check(response: Response): Promise<Response> {
  if (response.ok) return response;
  throw await APIError.of(response);
}
