// Tests the client that @hey-api/openapi-ts has generated into ./hey.
import * as fs from "node:fs";
import { client } from "./hey/client.gen";
import { createChatCompletion, createClientToken, createJobGen21, getJob, getJobContent, resolveModels, uploadFile } from "./hey/sdk.gen";

function must(holds: unknown, what: unknown): asserts holds { if (!holds) throw new Error(JSON.stringify(what)); }

async function main() {
  const { CUTROOM_URL, CUTROOM_INFERENCE_URL, CUTROOM_API_KEY, CLIP } = process.env;
  const video = () => new File([fs.readFileSync(CLIP!)], "clip.mp4", { type: "video/mp4" });
  client.setConfig({ baseUrl: CUTROOM_URL, auth: () => CUTROOM_API_KEY });

  const stored = await uploadFile({ body: { file: video() } });
  must(stored.data?.size_bytes === video().size, stored.error);

  const made = await createJobGen21({ body: { data: video(), prompt: "winter", seed: 7 } });
  must(made.data, made.error);
  const path = { job_id: made.data.job_id }, deadline = Date.now() + 120_000;
  let job = await getJob({ path });
  while (job.data?.status === "pending" || job.data?.status === "processing") {
    must(Date.now() < deadline, job.data);
    await new Promise(resolve => setTimeout(resolve, 100));
    job = await getJob({ path });
  }
  must(job.data?.status === "completed" && job.data.seed === 7, job.data ?? job.error);
  const content = await getJobContent({ path });
  must(content.data instanceof Blob && (await content.data.slice(4, 8).text()) === "ftyp", content.error);

  const rejected = await createJobGen21({ body: { data: video(), seed: -1 } });
  must(rejected.response?.status === 422, rejected);
  const problems = (rejected.error as { detail: { loc: string[]; type: string }[] }).detail;
  must(problems[0].loc.join() === "body,seed" && problems[0].type === "greater_than_equal", problems);

  const token = await createClientToken({ body: { expiresIn: 60 } });
  must(token.data, token.error);
  must(token.data.apiKey.startsWith("ek_") && token.data.permissions === null, token.data.permissions);
  for (const secret of [token.data.apiKey, token.data.token]) {
    must((await getJob({ path, auth: () => secret })).data?.status === "completed", secret.slice(0, 3));
  }
  must((await resolveModels({ body: { model: "gen-latest" } })).data?.model_id === "gen-2.5", "resolve");

  const chat = await createChatCompletion({
    baseUrl: CUTROOM_INFERENCE_URL, body: { model: "cutroom-echo", messages: [{ role: "user", content: "Hello!" }], max_tokens: 8 },
  });
  must(typeof chat.data === "object" && (chat.data as { choices: unknown[] }).choices.length === 1, chat.error);
  console.log("hey-api: ok");
}

main().catch(failure => { console.error(failure); process.exit(1); });
