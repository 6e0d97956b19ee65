/** Functions for Node that accept file paths. */
import { createWriteStream, openAsBlob } from "node:fs";
import { rename, rm, stat } from "node:fs/promises";
import { basename } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { ReadableStream } from "node:stream/web";
import { APIError, type Cutroom, CutroomError, type Edit, type Job } from "./index.js";

/** Returns a file on disk as a source. Its bytes are read only when they are sent. */
export async function file(path: string): Promise<File> {
  return new File([await openAsBlob(path)], basename(path));
}

/** After this many consecutive failures without progress, a download is given up. */
const breaks = 3;

/**
 * Writes the result of a completed job to a path. An incomplete download is kept in the same folder. A later call
 * resumes it, because a job's result never changes.
 */
export async function download(cutroom: Cutroom, id: string, path: string): Promise<void> {
  const partial = `${path}.${encodeURIComponent(id)}.part`;
  for (let broken = 0, before = await sizeOf(partial); ; ) {
    try {
      await rest(cutroom, id, partial, before);
      break;
    } catch (error) {
      if (error instanceof APIError) await rm(partial, { force: true }); // the download cannot be resumed
      const now = await sizeOf(partial);
      broken = now > before ? 0 : broken + 1;
      before = now;
      if (error instanceof CutroomError || broken === breaks) throw error;
    }
  }
  await rename(partial, path);
}

/** Downloads the missing bytes and writes them as they arrive. */
async function rest(cutroom: Cutroom, id: string, partial: string, offset: number): Promise<void> {
  const headers = { "Accept-Encoding": "identity", ...(offset > 0 ? { Range: `bytes=${offset}-` } : {}) };
  const response = await cutroom.jobs.content(id, { headers }).catch((error: unknown) => {
    if (offset > 0 && error instanceof APIError && error.status === 416) return null; // all bytes are already there
    throw error;
  });
  if (!response?.body) return;
  const resumed = response.status === 206;
  if (resumed && !response.headers.get("content-range")?.startsWith(`bytes ${offset}-`)) {
    throw new CutroomError(`the server did not send the range that starts at ${offset}`);
  }
  const out = createWriteStream(partial, { flags: resumed ? "a" : "w" });
  await pipeline(Readable.fromWeb(response.body as ReadableStream), out);
}

const sizeOf = (path: string): Promise<number> => stat(path).then((found) => found.size, () => 0);

/** Edits a file and writes the result to a path: submits the edit, waits and downloads. */
export async function edit(cutroom: Cutroom, model: string, input: string, output: string, fields: Omit<Edit, "data">,
  onChange: (job: Job) => void = () => undefined): Promise<Job> {
  const { job_id: id } = await cutroom.jobs.submit(model, { data: await file(input), ...fields });
  const job = await cutroom.jobs.wait(id, { onChange });
  await download(cutroom, id, output);
  return job;
}
