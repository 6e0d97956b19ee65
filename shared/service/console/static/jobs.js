// Submits jobs, follows them to their end, and fetches their results.

import { chunks, events, key, media, Refusal, settings } from "./service.js";
import { send, store } from "./upload.js";

// If event streams are not available, pollEvery is the pause between polls. retryAfter is the pause after a failed
// request. Both are in milliseconds.
const pollEvery = 700, retryAfter = 1500;

// quiet is how long a stream or a result may be silent, in milliseconds. The service sends a sign of life every 15
// seconds.
const quiet = 45_000;

export const ended = job => job.status === "completed" || job.status === "failed";

// stateOf returns a job's state for display. A cancelled job does not count as failed, and a result that equals its
// input does not count as done.
export const stateOf = job => job.error?.code === "cancelled" ? "cancelled" : job.changed === false ? "unchanged" : job.status;

export const stateWords = { pending: "Waiting", processing: "Editing", completed: "Done", unchanged: "Unchanged", failed: "Failed", cancelled: "Cancelled" };

// retryable reports whether the same edit could succeed in another attempt.
export const retryable = job => job.error?.code !== "invalid_input";

export const modelOf = job => settings.models.find(model => model.id === job.model);

// submit sends an edit and resolves to the new job's id. A file that is too large for a form is stored first, and the
// edit refers to it.
export async function submit(model, fields, watch) {
  const url = `${settings.base_url}/v1/jobs/${model.id}`, headers = { "x-api-key": key() };
  if (model.urlencoded) {
    const answer = await media("POST", `/v1/jobs/${model.id}`, { body: new URLSearchParams(fields), signal: watch.signal });
    return (await answer.json()).job_id;
  }
  const form = new FormData();
  for (const [name, value] of fields) {
    if (value instanceof File && value.size > settings.max_upload) form.append(name, (await store(value, watch)).id);
    else if (value instanceof File) form.append(name, value, value.name);
    else form.append(name, value);
  }
  return (await send("POST", url, headers, form, watch)).job_id;
}

const pause = (time, signal) => new Promise((resolve, reject) => {
  const timer = setTimeout(resolve, time);
  signal?.addEventListener("abort", () => {
    clearTimeout(timer);
    reject(signal.reason);
  }, { once: true });
});

// follow calls seen with each new state of a job, and resolves to the last state. It continues after a lost
// connection; lost(true) and lost(false) report when the connection is lost and restored.
export async function follow(id, { seen, lost, signal }) {
  const read = () => record(id, signal);
  let streams = true, gone = false;
  for (;;) {
    try {
      if (streams) {
        try {
          const answer = await media("GET", `/v1/jobs/${id}/events`, { signal });
          for await (const { event, data } of events(answer, quiet)) {
            if (gone) lost(gone = false);
            if (event !== "job") continue;
            const job = JSON.parse(data);
            seen(job);
            if (ended(job)) return job;
          }
        } catch (refusal) {
          // Older servers do not have this route, so poll the job.
          if (refusal.status !== 404 && refusal.status !== 405) throw refusal;
          streams = false;
        }
      }
      const job = await read();
      if (gone) lost(gone = false);
      seen(job);
      if (ended(job)) return job;
      await pause(pollEvery, signal);
    } catch (failure) {
      // An interrupted stream throws a TypeError or a NetworkError, which have no status.
      const answered = failure.status > 0 && failure.status < 500 && failure.status !== 429;
      if (signal?.aborted || answered) throw failure;
      if (!gone) lost(gone = true);
      await pause(retryAfter, signal);
    }
  }
}

export async function record(id, signal) {
  return (await media("GET", `/v1/jobs/${encodeURIComponent(id)}`, { signal })).json();
}

// cancel cancels a job and resolves to its state, because the job may already have ended.
export async function cancel(id) {
  try {
    return await (await media("DELETE", `/v1/jobs/${id}`)).json();
  } catch (refusal) {
    if (refusal.status !== 409) throw refusal;
    return record(id);
  }
}

// purge deletes a job that has ended.
export const purge = id => media("DELETE", `/v1/jobs/${id}?purge=true`);

// share creates a link that works without a key, and resolves to {url, expires_at}. The link expires after the given
// seconds, or with the result.
export async function share(id, seconds) {
  return (await media("POST", `/v1/jobs/${id}/shares`, { body: seconds ? { expires_in: seconds } : {} })).json();
}

export async function result(id, signal) {
  const answer = await media("GET", `/v1/jobs/${id}/content`, { signal });
  const parts = [];
  for await (const part of chunks(answer.body, quiet)) parts.push(part);
  return new Blob(parts, { type: answer.headers.get("content-type") || "" });
}

// list resolves to one page of the account's jobs, {jobs, next_cursor}, or to undefined if the service keeps no list.
export async function list(query, signal) {
  const asked = new URLSearchParams(Object.entries(query).filter(([, value]) => value));
  try {
    return await (await media("GET", `/v1/jobs?${asked}`, { signal })).json();
  } catch (refusal) {
    if (refusal instanceof Refusal && (refusal.status === 404 || refusal.status === 405)) return undefined;
    throw refusal;
  }
}
