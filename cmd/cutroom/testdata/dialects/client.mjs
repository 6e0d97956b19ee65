// Calls the gateway's other dialects (Responses and Messages) with the official client libraries for Node.
//
// Each check prints its name when it has passed; the first failure ends the program. URLs and keys come from the
// environment.
import assert from "node:assert/strict";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";

const model = "cutroom-echo";
const pixel = Buffer.from("a picture").toString("base64");
const schema = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const hello = [{ role: "user", content: "Grüße 🤚🏾, you!" }];
const cities = [{ city: "Köln" }, { city: "Rom" }];

const url = process.env.GATEWAY_URL;
const oai = (key = "PERMANENT_KEY", options = {}) =>
  new OpenAI({ baseURL: url + "/v1", apiKey: process.env[key], maxRetries: 0, ...options });
const claude = (key = "PERMANENT_KEY", options = {}) =>
  new Anthropic({ baseURL: url, apiKey: process.env[key], maxRetries: 0, ...options });

// rejected returns the error that the call throws, and checks its class.
async function rejected(kind, call) {
  const error = await call.then(() => assert.fail(`no ${kind.name} was thrown`), (error) => error);
  assert.ok(error instanceof kind, `${error} is no ${kind.name}`);
  return error;
}

const checks = {
  async responses() {
    const answer = await oai().responses.create({ model, input: hello[0].content, instructions: "Be kind." });
    assert.match(answer.output_text, /Grüße 🤚🏾, you!/);
    assert.equal(answer.status, "completed");
    assert.ok(answer.usage.total_tokens > 0);
  },
  async responses_stream() {
    const stream = oai().responses.stream({ model, input: hello[0].content });
    let text = "";
    for await (const event of stream) if (event.type === "response.output_text.delta") text += event.delta;
    const final = await stream.finalResponse();
    assert.equal(final.output_text, text);
    assert.match(text, /Grüße 🤚🏾, you!/);
  },
  async responses_parse() {
    const format = { type: "json_schema", name: "weather", schema, strict: true };
    const answer = await oai().responses.parse({ model, input: "hello", text: { format } });
    assert.equal(typeof JSON.parse(answer.output_text).city, "string");
  },
  // An agent's turns, with a picture and two parallel tool calls.
  async responses_agent() {
    const tools = [{ type: "function", name: "get_weather", parameters: schema, strict: true }];
    const picture = { type: "input_image", image_url: "data:image/png;base64," + pixel, detail: "auto" };
    const input = [{ role: "user", content: [{ type: "input_text", text: "look" }, picture] }];
    const request = { model: "agent", instructions: "Be kind.", tools };
    let answer = await oai().responses.stream({ ...request, input }).finalResponse();
    const kinds = ["reasoning", "message", "function_call", "function_call"];
    assert.deepEqual(answer.output.map((item) => item.type), kinds);
    const calls = answer.output.slice(2);
    assert.deepEqual(calls.map((call) => JSON.parse(call.arguments)), cities);
    const results = calls.map(({ call_id }) => ({ type: "function_call_output", call_id, output: "sunny" }));
    answer = await oai().responses.create({ ...request, input: [...input, ...answer.output, ...results] });
    assert.equal(answer.output_text, "sunny in both");
  },
  async responses_errors() {
    const ask = (key, fields = {}) => oai(key).responses.create({ model, input: "x", ...fields });
    assert.equal((await rejected(OpenAI.NotFoundError, ask(undefined, { model: "none" }))).code, "model_not_found");
    const error = await rejected(OpenAI.BadRequestError, ask(undefined, { tools: [{ type: "web_search" }] }));
    assert.equal(error.param, "tools[0]");
    await rejected(OpenAI.AuthenticationError, ask("WRONG_KEY"));
    await rejected(OpenAI.PermissionDeniedError, ask("OTHER_MODELS_TOKEN"));
    assert.ok((await ask("MODELS_TOKEN")).output_text);
  },
  async responses_broken() {
    let last;
    const stream = await oai().responses.create({ model: "breaking", input: "x", stream: true });
    for await (const event of stream) last = event;
    assert.equal(last.type, "response.failed");
    assert.equal(last.response.error.code, "upstream_error");
  },
  async messages() {
    const answer = await claude().messages.create({ model, max_tokens: 500, system: "Be kind.", messages: hello });
    assert.match(answer.content[0].text, /Grüße 🤚🏾, you!/);
    assert.equal(answer.stop_reason, "end_turn");
  },
  async messages_stream() {
    const stream = claude().messages.stream({ model, max_tokens: 500, messages: hello });
    let text = "";
    stream.on("text", (piece) => (text += piece));
    const final = await stream.finalMessage();
    assert.equal(final.content[0].text, text);
    assert.ok(final.usage.input_tokens > 0 && final.usage.output_tokens > 0);
  },
  // An agent's turns, with a picture and two parallel tool calls.
  async messages_agent() {
    const tools = [{ name: "get_weather", input_schema: schema, strict: true }];
    const image = { type: "image", source: { type: "base64", media_type: "image/png", data: pixel } };
    const messages = [{ role: "user", content: [{ type: "text", text: "look" }, image] }];
    const request = { model: "agent", max_tokens: 40, system: "Be kind.", tools };
    let answer = await claude().messages.stream({ ...request, messages }).finalMessage();
    assert.deepEqual(answer.content.map((block) => block.type), ["thinking", "text", "tool_use", "tool_use"]);
    const calls = answer.content.slice(2);
    assert.deepEqual(calls.map((call) => call.input), cities);
    const results = calls.map(({ id }) => ({ type: "tool_result", tool_use_id: id, content: "sunny" }));
    messages.push({ role: "assistant", content: answer.content }, { role: "user", content: results });
    answer = await claude().messages.create({ ...request, messages });
    assert.equal(answer.content[0].text, "sunny in both");
  },
  async messages_errors() {
    const ask = (key, fields = {}) => claude(key).messages.create({ model, max_tokens: 5, messages: hello, ...fields });
    const error = await rejected(Anthropic.NotFoundError, ask(undefined, { model: "none" }));
    assert.equal(error.error.error.type, "not_found_error");
    await rejected(Anthropic.AuthenticationError, ask("WRONG_KEY"));
    await rejected(Anthropic.PermissionDeniedError, ask("OTHER_MODELS_TOKEN"));
    assert.ok((await ask("MODELS_TOKEN")).content);
  },
  async messages_broken() {
    const stream = claude().messages.stream({ model: "breaking", max_tokens: 5, messages: hello });
    await rejected(Anthropic.APIError, stream.finalMessage());
  },
  async count() {
    assert.ok((await claude().messages.countTokens({ model, messages: hello })).input_tokens > 5);
  },
  async embeddings() {
    const { data } = await oai().embeddings.create({ model, input: ["a red fox", "tax"], dimensions: 16 });
    assert.deepEqual(data.map((each) => each.embedding.length), [16, 16]);
  },
};

for (const [name, check] of Object.entries(checks)) {
  await check();
  console.log(name);
}
