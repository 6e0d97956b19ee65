// Sends a prompt to a language model through the gateway, with OpenAI's client: node chat.mjs TEXT
import OpenAI from "openai";

const gateway = new OpenAI({
  baseURL: `${process.env.CUTROOM_INFERENCE_URL}/v1`,
  apiKey: process.env.CUTROOM_API_KEY,
});
const stream = await gateway.chat.completions.create({
  model: "cutroom-echo",
  messages: [{ role: "user", content: process.argv[2] }],
  stream: true,
});
for await (const chunk of stream) process.stdout.write(chunk.choices[0]?.delta.content ?? "");
console.log();
