// Jobs: submitting one, following it to its end, and fetching its result.

import { chunks, events, key, media, Refusal, settings } from "./service.js";
import { send, store } from "./upload.js";

// for polling, where the event stream is not available
const pollEvery = 700, retryAfter = 1500;

// quiet limits the silence of a stream or a result, in milliseconds. The service sends a sign of
// life every 15 seconds.
const quiet = 45_000;

export const ended = job => job.status === "completed" || job.status === "failed";

// stateOf returns a job's state as text. A cancelled job is not shown as failed, and a result that
// equals its input not as done.
export const stateOf = job => job.error?.code === "cancelled" ? "cancelled" : job.changed === false ? "unchanged" : job.status;

export const stateWords = { pending: "Waiting", processing: "Editing", completed: "Done", unchanged: "Unchanged", failed: "Failed", cancelled: "Cancelled" };

// retryable reports whether the same edit might succeed if it is sent again.
export const retryable = job => job.error?.code !== "invalid_input";

export const modelOf = job => settings.models.find(model => model.id === job.model);

// submit returns the new job's id. A file that is too large for a form is stored first and sent by its reference.
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

// follow calls seen with each state of a job, and resolves to the last one. It survives a lost
// connection, which it reports with lost(true) and lost(false).
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
          // Older servers do not have this route.
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
      // An interrupted stream causes a TypeError or a NetworkError.
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

// cancel returns the job's state, because the job may have ended before.
export async function cancel(id) {
  try {
    return await (await media("DELETE", `/v1/jobs/${id}`)).json();
  } catch (refusal) {
    if (refusal.status !== 409) throw refusal;
    return record(id);
  }
}

// The job must have ended.
export const purge = id => media("DELETE", `/v1/jobs/${id}?purge=true`);

// share returns a link that needs no key, {url, expires_at}. It expires after some seconds or with the result.
export async function share(id, seconds) {
  return (await media("POST", `/v1/jobs/${id}/shares`, { body: seconds ? { expires_in: seconds } : {} })).json();
}

export async function result(id, signal) {
  const answer = await media("GET", `/v1/jobs/${id}/content`, { signal });
  const parts = [];
  for await (const part of chunks(answer.body, quiet)) parts.push(part);
  return new Blob(parts, { type: answer.headers.get("content-type") || "" });
}

// list returns a page, {jobs, next_cursor}, or undefined if the service keeps no list.
export async function list(query, signal) {
  const asked = new URLSearchParams(Object.entries(query).filter(([, value]) => value));
  try {
    return await (await media("GET", `/v1/jobs?${asked}`, { signal })).json();
  } catch (refusal) {
    if (refusal instanceof Refusal && (refusal.status === 404 || refusal.status === 405)) return undefined;
    throw refusal;
  }
}
