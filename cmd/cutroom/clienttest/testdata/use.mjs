// Uses the TypeScript client package over a faulty network: use.mjs CLIP SEED
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { inspect } from "node:util";
import { APIError, Cutroom, JobFailed } from "cutroom";
import { download, file } from "cutroom/node";

const [path, seed] = [process.argv[2], Number(process.argv[3])];
const cutroom = new Cutroom();
const all = async (items) => {
  const found = [];
  for await (const item of items) found.push(item);
  return found;
};
const rejected = async (kind, call) => {
  const error = await call.then(() => assert.fail(`no ${kind.name} was thrown`), (error) => error);
  assert.ok(error instanceof kind, inspect(error));
  return error;
};

const clip = await file(path);
const stored = await cutroom.files.upload(clip, { ttl: 3600 });
assert.equal(stored.size_bytes, clip.size);
assert.equal(stored.filename, clip.name);
const announced = await cutroom.files.announce(clip, { ttl: "persistent", filename: "again.mp4" });
assert.deepEqual([announced.md5, announced.expires_at, announced.filename], [stored.md5, null, "again.mp4"]);
const listed = (await all(cutroom.files.list())).map((each) => each.id);
assert.ok(listed.includes(stored.id) && listed.includes(announced.id));

const { job_id: id } = await cutroom.jobs.submit("gen-2.1", { data: stored, prompt: "winter", seed });
const seen = [];
const done = await cutroom.jobs.wait(id, { onChange: (job) => seen.push(job) });
assert.deepEqual([done.status, done.seed, seen.at(-1)], ["completed", seed, done]);
const made = (await all(cutroom.jobs.list({ model: "gen-2.1" }))).filter((job) => job.seed === seed);
assert.deepEqual(made.map((job) => job.job_id), [id]);
const output = join(dirname(path), `${seed}.mp4`);
await download(cutroom, id, output);
assert.equal(readFileSync(output).subarray(4, 8).toString(), "ftyp");

const broken = await cutroom.jobs.submit("gen-2.1", { data: clip.slice(0, clip.size / 2), prompt: "winter" });
const failure = await rejected(JobFailed, cutroom.jobs.wait(broken.job_id));
assert.equal(failure.job.error.code, "invalid_input");
const error = await rejected(APIError, cutroom.jobs.submit("gen-2.1", { data: clip, seed: -1 }));
assert.deepEqual([error.status, error.fields[0].loc], [422, ["body", "seed"]]);
assert.equal((await rejected(APIError, download(cutroom, "job_none", output))).status, 404);
const stop = new AbortController();
stop.abort(new Error("stopped"));
assert.match((await rejected(Error, cutroom.jobs.wait(id, { signal: stop.signal }))).message, /stopped/);

const start = async (picture) => Buffer.from(await (await picture).arrayBuffer()).subarray(0, 3).toString("hex");
assert.deepEqual([await start(cutroom.jobs.thumbnail(id)), await start(cutroom.jobs.thumbnail(id, { of: "input" })),
  await start(cutroom.jobs.thumbnail(id, { size: "poster" })), await start(cutroom.files.thumbnail(stored.id))],
["ffd8ff", "ffd8ff", "ffd8ff", "ffd8ff"]);
assert.equal((await rejected(APIError, cutroom.files.thumbnail("file_none"))).status, 404);
assert.deepEqual((await all(cutroom.jobs.list({ search: id }))).map((job) => job.job_id), [id]);
const link = await cutroom.jobs.share(id, { expiresIn: 60 });
assert.deepEqual(Buffer.from(await (await fetch(link.url)).arrayBuffer()), readFileSync(output));
assert.equal((await rejected(APIError, cutroom.jobs.share(id, { expiresIn: 0 }))).status, 422);

for (const each of [stored, announced]) await cutroom.files.delete(each.id);
const token = await cutroom.createToken({ expiresIn: 60, models: ["gen-2.1"] });
const limited = new Cutroom({ apiKey: token.apiKey });
assert.deepEqual(await limited.jobs.get(id), done);
assert.equal((await rejected(APIError, limited.createToken())).status, 403);
const played = await fetch(cutroom.jobs.contentURL(id, token.apiKey), { headers: { Range: "bytes=4-7" } });
assert.equal(await played.text(), "ftyp");
assert.equal((await fetch(cutroom.jobs.thumbnailURL(id, token.apiKey))).headers.get("Content-Type"), "image/jpeg");
const poster = await fetch(cutroom.jobs.thumbnailURL(id, token.apiKey, "result", "poster"));
assert.match(poster.headers.get("ETag"), /-poster"$/);
await cutroom.jobs.delete(id);
assert.equal((await rejected(APIError, cutroom.jobs.get(id))).status, 404);
assert.equal((await fetch(link.url)).status, 404);

assert.equal((await cutroom.media.GET("/v1/realtime/quota")).data.limit, 5);
const answer = await cutroom.inference.POST("/v1/chat/completions", {
  body: { model: "cutroom-echo", messages: [{ role: "user", content: "Hello!" }] },
});
assert.ok(answer.data.choices[0].message.content);
assert.ok(!inspect([cutroom, error, failure], { depth: 9 }).includes(process.env.CUTROOM_API_KEY));
delete process.env.CUTROOM_API_KEY;
assert.throws(() => new Cutroom(), /CUTROOM_API_KEY/);
console.log("typescript: ok");
