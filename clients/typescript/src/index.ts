/**
 * A client of Cutroom: edit videos and images, make videos from text, and follow the jobs.
 *
 * `schema.ts` is written by a generator from the service's OpenAPI document; the modules beside it are written by hand
 * and add what a generator cannot know: waiting, retries, large uploads. This module runs wherever `fetch` does;
 * `cutroom/node` adds paths of files.
 */
export { Cutroom, type CutroomOptions, type TokenOptions } from "./client.js";
export { APIError, ConnectionError, CutroomError, JobFailed, type FieldError } from "./errors.js";
export type { Files, UploadOptions } from "./files.js";
export type { Edit, Job, JobCreated, Jobs, PictureSize, Share } from "./jobs.js";
export type { CredentialsReport, Source, StoredFile } from "./sources.js";
export type { components, operations, paths } from "./schema.js";
