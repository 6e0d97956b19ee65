// Edits images and videos with the official client library for Node. See client.mjs.
import assert from "node:assert/strict";
import { createReadStream } from "node:fs";
import OpenAI from "openai";

const media = (name) => createReadStream(`${process.env.MEDIA}/${name}`);
const client = new OpenAI({ baseURL: process.env.GATEWAY_URL + "/v1", apiKey: process.env.PERMANENT_KEY, maxRetries: 0 });

const checks = {
  async edit() {
    const answer = await client.images.edit({
      model: "gen-image-2", image: [media("reference.jpg"), media("garment.png")], prompt: "pencil sketch", n: 2,
    });
    assert.equal(answer.data.length, 2);
    assert.equal(Buffer.from(answer.data[1].b64_json, "base64").subarray(1, 4).toString(), "PNG");
  },
  async generate() {
    await assert.rejects(client.images.generate({ model: "gen-image-2", prompt: "a cat" }), { status: 404, code: "model_not_found" });
  },
  async video() {
    let made = await client.videos.create({ model: "gen-2.5", prompt: "film noir", input_reference: media("clip.mp4"), seconds: "4" });
    while (made.status === "queued" || made.status === "in_progress") {
      await new Promise((wake) => setTimeout(wake, 300));
      made = await client.videos.retrieve(made.id);
    }
    assert.equal(made.status, "completed");
    const content = Buffer.from(await (await client.videos.downloadContent(made.id)).arrayBuffer());
    assert.equal(content.subarray(4, 8).toString(), "ftyp");
    const ids = [];
    for await (const each of client.videos.list({ limit: 1 })) ids.push(each.id);
    assert.deepEqual(ids, [made.id]);
    assert.ok((await client.videos.delete(made.id)).deleted);
    await assert.rejects(client.videos.retrieve(made.id), { status: 404 });
  },
  async errors() {
    await assert.rejects(client.videos.create({ model: "gen-2.5", prompt: "x" }), { status: 400, param: "input_reference" });
  },
};

for (const [name, check] of Object.entries(checks)) {
  await check();
  console.log(name);
}
