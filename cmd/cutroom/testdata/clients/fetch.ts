// Uses openapi-fetch with the types that openapi-typescript has generated into
// ./schema.
import * as fs from "node:fs";
import createClient from "openapi-fetch";
import type { paths } from "./schema";

function must(holds: unknown, what: unknown): asserts holds { if (!holds) throw new Error(JSON.stringify(what)); }

async function main() {
  const { CUTROOM_URL, CUTROOM_INFERENCE_URL, CUTROOM_API_KEY, CLIP } = process.env;
  const media = createClient<paths>({ baseUrl: CUTROOM_URL, headers: { "x-api-key": CUTROOM_API_KEY } });
  const form = (fields: Record<string, unknown>) => {
    const data = new FormData();
    data.append("data", new File([fs.readFileSync(CLIP!)], "clip.mp4", { type: "video/mp4" }));
    for (const [name, value] of Object.entries(fields)) if (name !== "data") data.append(name, String(value));
    return data;
  };
  const made = await media.POST("/v1/jobs/gen-2.1", { body: { data: "", prompt: "winter", enhance_prompt: true }, bodySerializer: form });
  must(made.data?.status === "pending", made.error);
  const params = { path: { job_id: made.data.job_id } }, deadline = Date.now() + 120_000;
  let job = await media.GET("/v1/jobs/{job_id}", { params });
  while (job.data?.status === "pending" || job.data?.status === "processing") {
    must(Date.now() < deadline, job.data);
    await new Promise(resolve => setTimeout(resolve, 100));
    job = await media.GET("/v1/jobs/{job_id}", { params });
  }
  must(job.data?.status === "completed", job.data ?? job.error);
  const content = await media.GET("/v1/jobs/{job_id}/content", { params, parseAs: "arrayBuffer" });
  must(Buffer.from(content.data!).subarray(4, 8).toString() === "ftyp", content.error);
  const refused = await media.POST("/v1/jobs/gen-2.1", { body: { data: "", seed: -1, enhance_prompt: true }, bodySerializer: form });
  must(refused.response.status === 422, refused);

  const gateway = createClient<paths>({ baseUrl: CUTROOM_INFERENCE_URL, headers: { authorization: `Bearer ${CUTROOM_API_KEY}` } });
  const models = await gateway.GET("/v1/models");
  must(models.data?.data.some(model => model.id === "cutroom-echo"), models.error);
  console.log("openapi-typescript: ok");
}

main().catch(failure => { console.error(failure); process.exit(1); });
