// Writes commands and programs that repeat the page's calls from a terminal.

import { settings } from "./service.js";

// obeyed matches characters that a terminal interprets when text is pasted. Without escaping, file names and model
// output could use them to change the command without the user noticing.
const obeyed = /[\0-\t\v-\x1f\x7f-\x9f]/;

// octal returns a character's UTF-8 bytes as octal escapes.
const octal = character => Array.from(new TextEncoder().encode(character), byte => "\\" + byte.toString(8).padStart(3, "0")).join("");

// quote quotes a string as one word for a POSIX shell. If it contains characters that a terminal interprets, the
// dollar-single-quote syntax is used (POSIX.1-2024), which bash, zsh and ksh support.
export const quote = text => {
  if (/^[\w@%+=:,./-]+$/.test(text)) return text;
  if (!obeyed.test(text)) return `'${text.replaceAll("'", `'\\''`)}'`;
  return `$'${text.replace(/['\\]/g, "\\$&").replace(new RegExp(obeyed, "g"), octal)}'`;
};

const keyHeader = `-H "x-api-key: $CUTROOM_API_KEY"`;

// part returns a form field in curl's syntax. If value is an object, it is a file with a name. The name is in double
// quotes if it contains characters that curl would interpret.
function part(name, value) {
  if (typeof value !== "object") return `--form-string ${quote(`${name}=${value}`)}`;
  const path = /[;,"\\]/.test(value.name) ? `"${value.name.replace(/["\\]/g, "\\$&")}"` : value.name;
  return `-F ${quote(`${name}=@${path}`)}`;
}

// submitCommand returns a curl command that submits the same edit. fields includes the seed, so the result is the
// same.
export function submitCommand(model, fields) {
  const parts = fields.map(([name, value]) => model.urlencoded ? `--data-urlencode ${quote(`${name}=${value}`)}` : part(name, value));
  return [`curl ${settings.base_url}/v1/jobs/${model.id} ${keyHeader}`, ...parts].join(" \\\n  ");
}

export const fetchCommand = (id, name) => `curl -f ${settings.base_url}/v1/jobs/${id}/content ${keyHeader} -L -o ${quote(name)}`;

// literal writes a string as a literal that is valid in Python and in JavaScript. Characters that a terminal
// interprets are escaped.
const literal = text => JSON.stringify(String(text)).replace(/[\x7f-\x9f]/g, character => `\\u00${character.charCodeAt(0).toString(16)}`);

// pythonProgram returns a program that submits the form, waits, and saves the result. It uses the library requests.
export function pythonProgram(model, fields, name) {
  const parts = fields.map(([field, value]) => `        ${literal(field)}: ${typeof value === "object" ? `open(${literal(value.name)}, "rb")` : model.urlencoded ? literal(value) : `(None, ${literal(value)})`},`);
  return `import os, time, requests

service = ${literal(settings.base_url)}
headers = {"x-api-key": os.environ["CUTROOM_API_KEY"]}
answer = requests.post(
    service + ${literal(`/v1/jobs/${model.id}`)},
    headers=headers,
    ${model.urlencoded ? "data" : "files"}={
${parts.join("\n")}
    },
)
if not answer.ok:
    raise SystemExit(answer.text)
url = service + "/v1/jobs/" + answer.json()["job_id"]
while (job := requests.get(url, headers=headers).json())["status"] in ("pending", "processing"):
    time.sleep(1)
if job["status"] == "failed":
    raise SystemExit(job["error"]["message"])
with open(${literal(name)}, "wb") as file:
    file.write(requests.get(url + "/content", headers=headers).content)
`;
}

export function javascriptProgram(model, fields, name) {
  const parts = fields.map(([field, value]) => `form.append(${literal(field)}, ${typeof value === "object" ? `await openAsBlob(${literal(value.name)}), ${literal(value.name)}` : literal(value)});`);
  const opens = fields.some(([, value]) => typeof value === "object");
  return `${opens ? `import { openAsBlob } from "node:fs";\n` : ""}import { writeFile } from "node:fs/promises";

const service = ${literal(settings.base_url)};
const headers = { "x-api-key": process.env.CUTROOM_API_KEY };
const form = new ${model.urlencoded ? "URLSearchParams" : "FormData"}();
${parts.join("\n")}
const answer = await fetch(service + ${literal(`/v1/jobs/${model.id}`)}, { method: "POST", headers, body: form });
if (!answer.ok) throw new Error(await answer.text());
const url = service + "/v1/jobs/" + (await answer.json()).job_id;
let job;
do {
  await new Promise(resolve => setTimeout(resolve, 1000));
  job = await (await fetch(url, { headers })).json();
} while (["pending", "processing"].includes(job.status));
if (job.status === "failed") throw new Error(job.error.message);
const result = await fetch(url + "/content", { headers });
await writeFile(${literal(name)}, Buffer.from(await result.arrayBuffer()));
`;
}

export const chatCommand = body => [
  `curl ${settings.inference_url}/v1/chat/completions`,
  `-H "authorization: Bearer $CUTROOM_API_KEY" -H 'content-type: application/json'`,
  `-N -d ${quote(JSON.stringify(body))}`,
].join(" \\\n  ");
