// Calls the inference gateway with the official client library for Node.
//
// Each check prints its name when it has passed; the first failure ends the program. URLs and keys
// come from the environment.
import assert from "node:assert/strict";
import OpenAI from "openai";

const model = "cutroom-echo";
const messages = [{ role: "user", content: "Grüße 🤚🏾, you!" }];
const schema = {
  type: "object",
  properties: { city: { type: "string" }, days: { type: "integer" } },
  required: ["city", "days"],
  additionalProperties: false,
};
const tools = [{ type: "function", function: { name: "get_weather", strict: true, parameters: schema } }];

const client = (key = "PERMANENT_KEY", options = {}) =>
  new OpenAI({ baseURL: process.env.GATEWAY_URL + "/v1", apiKey: process.env[key], maxRetries: 0, ...options });
const ask = (fields = {}, key, options) => client(key, options).chat.completions.create({ model, messages, ...fields });

// rejected returns the error that the call throws, and checks its class.
async function rejected(kind, call) {
  const error = await call.then(() => assert.fail(`no ${kind.name} was thrown`), (error) => error);
  assert.ok(error instanceof kind, `${error} is no ${kind.name}`);
  return error;
}

const checks = {
  async models() {
    const listed = new Map();
    for await (const each of client().models.list()) listed.set(each.id, each);
    assert.equal(listed.get(model).max_output_length, 4096);
    assert.ok(!listed.has("cutroom-chat"), "a placeholder is listed");
    assert.deepEqual((await client().models.retrieve(model)).capabilities.slice(0, 2), ["chat", "completions"]);
    await rejected(OpenAI.NotFoundError, client().models.retrieve("cutroom-chat"));
  },
  async chat() {
    const { data, response } = await ask().withResponse();
    const { message, finish_reason } = data.choices[0];
    assert.match(message.content, /not a language model.*Grüße 🤚🏾, you!/);
    assert.equal(finish_reason, "stop");
    assert.equal(data.usage.total_tokens, data.usage.prompt_tokens + data.usage.completion_tokens);
    assert.equal(data.usage.completion_tokens_details.reasoning_tokens, 0);
    assert.equal(response.headers.get("x-tokens-used"), String(data.usage.total_tokens));
    assert.equal(data._request_id, response.headers.get("x-request-id"));
  },
  async limits() {
    const cut = await ask({ max_tokens: 3 });
    assert.equal(cut.choices[0].finish_reason, "length");
    assert.equal(cut.usage.completion_tokens, 3);
    assert.match((await ask({ stop: "language" })).choices[0].message.content, /It is not a $/);
  },
  async streaming() {
    const whole = await ask();
    let text = "", usage = null, count = 0;
    for await (const chunk of await ask({ stream: true, stream_options: { include_usage: true } })) {
      count++;
      text += chunk.choices[0]?.delta.content ?? "";
      usage = chunk.usage ?? usage;
    }
    assert.equal(text, whole.choices[0].message.content);
    assert.deepEqual(usage, whole.usage);
    assert.ok(count > 10);
    const runner = client().chat.completions.stream({ model, messages });
    assert.equal(await runner.finalContent(), text);
  },
  async leaving_a_stream() {
    for await (const _ of await ask({ stream: true })) break;
  },
  async tools() {
    const answer = await ask({ tools });
    const call = answer.choices[0].message.tool_calls[0];
    assert.equal(answer.choices[0].finish_reason, "tool_calls");
    const given = JSON.parse(call.function.arguments);
    assert.ok(given.days === 1 && typeof given.city === "string");
    const followed = await ask({
      tools,
      messages: [...messages, answer.choices[0].message, { role: "tool", tool_call_id: call.id, content: "sunny" }],
    });
    assert.match(followed.choices[0].message.content, /sunny/);
    const runner = client().chat.completions.stream({
      model, messages, tools, tool_choice: { type: "function", function: { name: "get_weather" } },
    });
    const streamed = (await runner.finalMessage()).tool_calls[0].function;
    assert.deepEqual(JSON.parse(streamed.arguments), given);
  },
  async json_mode() {
    const answer = await ask({ response_format: { type: "json_object" } });
    assert.equal(typeof JSON.parse(answer.choices[0].message.content), "object");
  },
  async structured_output() {
    const response_format = { type: "json_schema", json_schema: { name: "weather", strict: true, schema } };
    const answer = await client().chat.completions.parse({ model, messages, response_format });
    const content = JSON.parse(answer.choices[0].message.content);
    assert.deepEqual(Object.keys(content), ["city", "days"]);
    assert.ok(Number.isInteger(content.days) && content.days === 1);
    await rejected(OpenAI.OpenAIError, client().chat.completions.parse({ model, messages, tools, max_tokens: 2 }));
  },
  async completions() {
    const complete = (fields) => client().completions.create({ model, ...fields });
    const first = await complete({ prompt: "Once upon 🤚🏾", max_tokens: 12, return_token_ids: true });
    const { text, token_ids, finish_reason } = first.choices[0];
    assert.equal(finish_reason, "length");
    assert.equal(token_ids.length, 12);
    const back = await complete({ prompt: token_ids, echo: true, max_tokens: 1 });
    assert.ok(back.choices[0].text.startsWith(text));
    assert.equal(back.usage.prompt_tokens, 12);
    const several = await complete({ prompt: [[15339, 1917], [11]], echo: true });
    assert.match(several.choices[0].text, /^hello world /);
    let streamed = "";
    for await (const chunk of await complete({ prompt: ["a"], stream: true })) streamed += chunk.choices[0].text;
    assert.equal(streamed, (await complete({ prompt: "a" })).choices[0].text);
  },
  async errors() {
    let error = await rejected(OpenAI.AuthenticationError, ask({}, "WRONG_KEY"));
    assert.equal(error.code, "invalid_api_key");
    for (const name of ["nowhere", "cutroom-chat"]) {
      error = await rejected(OpenAI.NotFoundError, ask({ model: name }));
      assert.equal(error.code, "model_not_found");
      assert.ok(error.requestID);
    }
    error = await rejected(OpenAI.BadRequestError, ask({ temperature: 3 }));
    assert.equal(error.param, "temperature");
    assert.equal(error.type, "invalid_request_error");
    await rejected(OpenAI.PermissionDeniedError, ask({}, "OTHER_MODELS_TOKEN"));
    await ask({}, "MODELS_TOKEN");
    await ask({}, "TIGHT_KEY");
    error = await rejected(OpenAI.RateLimitError, ask({}, "TIGHT_KEY"));
    assert.equal(error.code, "rate_limit_exceeded");
    assert.equal(error.headers.get("x-ratelimit-remaining-requests"), "0");
    error = await rejected(OpenAI.InternalServerError, ask({ model: "unreachable" }));
    assert.equal(error.status, 502);
    assert.equal(error.code, "upstream_error");
  },
  async broken_stream() {
    const read = async () => {
      for await (const _ of await ask({ model: "breaking", stream: true }));
    };
    assert.equal((await rejected(OpenAI.APIError, read())).code, "upstream_error");
  },
  async timeouts() {
    await rejected(OpenAI.APIConnectionTimeoutError, ask({ model: "silent" }, undefined, { timeout: 300 }));
  },
  async retries() {
    const answer = await ask({ model: "flaky" }, undefined, { maxRetries: 2 });
    assert.equal(answer.choices[0].message.content, "at last");
  },
};

for (const [name, check] of Object.entries(checks)) {
  await check();
  console.log(name);
}
