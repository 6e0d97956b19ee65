import type { components } from "./schema.js";

/** The base class of this package's errors. */
export class CutroomError extends Error {
  override name = "CutroomError";
}

/** An error in one field of a request. */
export interface FieldError {
  loc: string[];
  msg: string;
  type: string;
}

/** The service rejected a call. */
export class APIError extends CutroomError {
  override name = "APIError";
  constructor(
    message: string,
    readonly status: number,
    /** The request's id, which also appears in the service's log. */
    readonly requestID: string,
    /** How many seconds to wait before a retry, as requested by the service, or 0. */
    readonly retryAfter: number,
    /** The errors in the request's fields (status 422). */
    readonly fields: FieldError[] = [],
    /** The gateway's error code, such as "model_not_found". */
    readonly code: string = "",
  ) {
    super(message);
  }

  /** Reads an error response. If a proxy has sent it, the body may be anything; then only the status is used. */
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

/** The job failed while the caller waited for it. `job.error` contains the reason. */
export class JobFailed extends CutroomError {
  override name = "JobFailed";
  constructor(readonly job: components["schemas"]["Job"]) {
    super(`the job ${job.job_id} failed (${job.error?.code}): ${job.error?.message}`);
  }
}

/** Returns Retry-After in seconds, or 0 if it is absent or not a number. */
export function retryAfter(response: Response): number {
  const seconds = Number(response.headers.get("retry-after") ?? 0);
  return seconds > 0 ? seconds : 0;
}

/** Returns a successful response. Throws an APIError for other responses. */
export async function check(response: Response): Promise<Response> {
  if (response.ok) return response;
  throw await APIError.of(response);
}
