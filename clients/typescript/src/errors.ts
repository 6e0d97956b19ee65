import type { components } from "./schema.js";

/** Any error of this package. */
export class CutroomError extends Error {
  override name = "CutroomError";
}

/** An error in one field of a request. */
export interface FieldError {
  loc: string[];
  msg: string;
  type: string;
}

/** The response of a service that rejects a call. */
export class APIError extends CutroomError {
  override name = "APIError";
  constructor(
    message: string,
    readonly status: number,
    /** Identifies the call in the service's log. */
    readonly requestID: string,
    /** The pause that the service asks for, in seconds, or 0. */
    readonly retryAfter: number,
    /** The errors of the request's fields (status 422). */
    readonly fields: FieldError[] = [],
    /** The gateway's error code, such as "model_not_found". */
    readonly code: string = "",
  ) {
    super(message);
  }

  /** Reads an error response. A proxy may send any body. Then only the status is used. */
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

/** An awaited job failed. `job.error` contains the reason. */
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

/** Returns a successful response and throws an APIError for any other. */
export async function check(response: Response): Promise<Response> {
  if (response.ok) return response;
  throw await APIError.of(response);
}
