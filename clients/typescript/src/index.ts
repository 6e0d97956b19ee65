/**
 * A client for Cutroom: edit videos and images, make videos from text, and follow jobs.
 *
 * `schema.ts` is generated from the service's OpenAPI document. The other modules are written by hand. They add
 * waiting, retries and large uploads. This module runs wherever `fetch` exists. `cutroom/node` adds file paths.
 */
export { Cutroom, type CutroomOptions, type TokenOptions } from "./client.js";
export { APIError, ConnectionError, CutroomError, JobFailed, type FieldError } from "./errors.js";
export type { Files, UploadOptions } from "./files.js";
export type { Edit, Job, JobCreated, Jobs, PictureSize, Share } from "./jobs.js";
export type { CredentialsReport, Source, StoredFile } from "./sources.js";
export type { components, operations, paths } from "./schema.js";
