// Runs: the edits that this tab has started or shows, from the upload to the result.

import { cancel, ended, follow, modelOf, record, result, retryable, stateOf, submit } from "./jobs.js";
import { kindOf, modeOf } from "./models.js";
import { publish } from "./news.js";
import { store } from "./upload.js";
import { get, remember, sourceOf } from "./vault.js";

// An edit must have been watched for leastWatched milliseconds before its end can be estimated. sharedLife is how
// long the service keeps a file that several runs share, in seconds.
const leastWatched = 1500, sharedLife = 3600;

const working = new Set(["reading", "uploading", "waiting", "editing", "lost", "fetching"]);

export class Shared {
  constructor(file) {
    this.file = file;
    this.runs = new Set();
    this.controller = new AbortController();
  }

  // reference resolves to the stored file's id. While the file is being stored, it updates the run's progress.
  reference(run) {
    this.runs.add(run);
    run.controller.signal.addEventListener("abort", () => {
      this.runs.delete(run);
      if (!this.runs.size) this.controller.abort();
    });
    const show = phase => share => this.runs.forEach(run => run.show(phase, share));
    this.stored ??= store(this.file, { progress: show("uploading"), reading: show("reading"), signal: this.controller.signal }, sharedLife);
    return this.stored.then(file => file.id);
  }
}

// Run is one edit. Its phase is reading, uploading, waiting, editing, lost, fetching, done, failed or cancelled.
// share is the progress within the phase (0 to 1).
export class Run {
  constructor({ id, model, fields = [], source, job, shared }) {
    Object.assign(this, { id, model, fields, source, job, shared });
    this.controller = new AbortController();
    this.phase = id ? "waiting" : "uploading";
    this.share = 0;
    if (job) this.learn(job);
    this.listeners = new Set();
    this.began = Date.now();
  }

  // ofJob returns a run for a job that this tab has not started.
  static ofJob(job) {
    return new Run({ id: job.job_id, model: modelOf(job), job, fields: fieldsOf(job) });
  }

  // learn updates the run from a job's record, without following the job.
  learn(job) {
    this.job = job;
    this.phase = { pending: "waiting", processing: "editing", completed: "fetching" }[job.status] || stateOf(job);
    this.share = job.progress || 0;
  }

  get mode() { return this.model && modeOf(this.model); }
  get kind() { return this.model?.kind === "image" ? "image" : "video"; }
  get sourceKind() { return this.mode?.id === "image" ? "image" : "video"; }
  get working() { return working.has(this.phase) && !(this.phase === "fetching" && !this.fetches); }
  get prompt() { return this.fields.find(([name]) => name === "prompt")?.[1] || this.job?.prompt || ""; }
  get seed() { return this.job?.seed ?? this.fields.find(([name]) => name === "seed")?.[1]; }

  show(phase, share) {
    if (phase === "editing" && this.phase !== "editing") this.watchedFrom = { at: performance.now(), share };
    this.phase = phase;
    this.share = share;
    this.listeners.forEach(listener => listener(this));
  }

  // left returns how many seconds the edit still takes, or undefined if that is unknown.
  left() {
    if (this.phase === "editing" && this.job?.seconds_left !== undefined) return this.job.seconds_left;
    if (this.phase !== "editing" || !this.watchedFrom) return undefined;
    const time = performance.now() - this.watchedFrom.at, done = this.share - this.watchedFrom.share;
    return time < leastWatched || done <= 0 ? undefined : (1 - this.share) / done * time / 1000;
  }

  // unchanged reports whether the result is the same as the input.
  get unchanged() {
    return (this.phase === "done" || this.phase === "fetching") && this.job?.changed === false;
  }

  get outcome() { return this.unchanged ? "Unchanged" : "Done"; }

  words() {
    return {
      reading: "Reading the file", uploading: this.mode?.id === "words" ? "Sending" : "Uploading", waiting: "Waiting for a worker",
      editing: kindOf(this.model).doing, lost: "The connection was lost; retrying", fetching: "Fetching the result",
      done: this.outcome, failed: "Failed", cancelled: "Cancelled",
    }[this.phase];
  }

  async start() {
    this.controller = new AbortController();
    const { signal } = this.controller;
    this.problem = this.id = this.job = this.fetches = undefined;
    this.watched = true;
    this.show("uploading", 0);
    try {
      let fields = this.fields;
      if (this.shared) {
        const reference = await this.shared.reference(this);
        signal.throwIfAborted();
        fields = fields.map(([name, value]) => [name, value === this.shared.file ? reference : value]);
      }
      const id = await submit(this.model, fields, { progress: share => this.show("uploading", share), reading: share => this.show("reading", share), signal });
      this.id = id;
      if (this.source?.kept) remember(id, this.source.kept);
      publish("jobs");
    } catch (failure) {
      if (failure.name === "AbortError") return this.show("cancelled", 0);
      this.shared = undefined; // a retry must upload the file again
      return this.fail("The edit was not started.", failure.message, !(failure.status >= 400 && failure.status < 500 && failure.status !== 429 && failure.status !== 408));
    }
    await this.watch();
  }

  async watch() {
    const { signal } = this.controller;
    this.watched = true;
    try {
      const job = this.job && ended(this.job) ? this.job : await follow(this.id, {
        signal,
        seen: job => {
          this.job = job;
          this.show(job.status === "pending" ? "waiting" : "editing", job.progress);
        },
        lost: gone => gone && this.show("lost", undefined),
      });
      if (this.job !== job || !ended(job)) publish("jobs");
      this.job = job;
      if (job.status === "failed") return this.settle();
      await this.fetch();
    } catch (failure) {
      if (failure.name === "AbortError") return this.show("cancelled", 0);
      this.fail("The result could not be fetched.", failure.message, true);
    }
  }

  settle() {
    if (stateOf(this.job) === "cancelled") return this.show("cancelled", 0);
    this.fail("The edit failed.", this.job.error?.message || "No reason was given.", retryable(this.job));
  }

  // fetch fetches the result. Later calls do nothing.
  async fetch() {
    // Start later, so that listeners first see the phase "fetching".
    this.fetches ??= Promise.resolve().then(() => this.bring());
    this.show("fetching", 1);
    try {
      await this.fetches;
    } catch (failure) {
      this.fetches = undefined;
      if (failure.status === 404) return this.fail("The result was deleted.", "Results are kept for a day. Run the edit again to get a new result.", false);
      throw failure;
    }
    this.show("done", 1);
  }

  async bring() {
    // Read the record again, because an event stream may have sent an older one.
    this.job = await record(this.id).catch(() => this.job);
    this.blob = await result(this.id, this.controller.signal);
    this.url = URL.createObjectURL(this.blob);
  }

  // resume continues a run of which only the id is known. The result is fetched only when the run is shown.
  async resume() {
    try {
      this.job = await record(this.id);
    } catch (failure) {
      if (failure.status === 404) return this.fail("This edit was deleted.", "It is older than a week, or was deleted.", false);
      return this.watch();
    }
    if (!ended(this.job)) return this.watch();
    if (this.job.status === "failed") return this.settle();
    this.show("fetching", 1);
  }

  fail(title, why, again) {
    this.problem = { title, why, again };
    this.show("failed", 0);
  }

  // cancel stops the run. The form keeps its input.
  async cancel() {
    if (!this.id) return this.controller.abort();
    const job = await cancel(this.id);
    this.job = job;
    publish("jobs");
    if (job.status === "failed") this.controller.abort();
  }

  // again repeats the part that failed: the whole edit, or only the fetching of the result.
  again() {
    if (this.job?.status !== "completed" && (!this.id || this.job?.status === "failed")) return this.start();
    this.show("waiting", 0);
    return this.watch();
  }

  // original resolves to a URL of the input, or to undefined if this browser does not have the input.
  async original() {
    if (this.source?.url) return this.source.url;
    if (this.mode?.id === "words") return undefined;
    const kept = this.source?.kept ? await get(this.source.kept) : this.id && await sourceOf(this.id);
    if (!kept) return undefined;
    this.source = { value: kept, name: kept.name, size: kept.size, ...this.source, url: URL.createObjectURL(kept) };
    return this.source.url;
  }

  // kept returns what must be stored in order to restore the run after a reload.
  kept() {
    const fields = this.fields.map(([name, value]) => [name, typeof value === "object" ? { name: value.name } : value]);
    return { id: this.id, model: this.model?.id, fields, source: this.source && { name: this.source.name, size: this.source.size, kept: this.source.kept } };
  }
}

// fieldsOf returns the fields of an edit that its job's record contains, which are not all.
export function fieldsOf(job) {
  const fields = [];
  for (const [name, input] of Object.entries(job.inputs || {})) fields.push([name, { name: input.name || `${name}.${(input.mime || "").split("/")[1] || "bin"}` }]);
  if (job.prompt) fields.push(["prompt", job.prompt]);
  fields.push(["seed", String(job.seed)]);
  for (const [name, value] of Object.entries(job.options || {})) fields.push([name, String(value)]);
  return fields;
}
