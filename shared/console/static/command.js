// The lines for a terminal that do what the page has done.

import { settings } from "./service.js";

// quote makes one word of a text, for a POSIX shell.
export const quote = text => /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;

const keyHeader = `-H "x-api-key: $CUTROOM_API_KEY"`;

// part is a field of a form as curl takes it. A name in double quotes may have
// the characters that curl would read as its own.
function part(name, value) {
  if (!(value instanceof File)) return `--form-string ${quote(`${name}=${value}`)}`;
  const path = /[;,"\\]/.test(value.name) ? `"${value.name.replace(/["\\]/g, "\\$&")}"` : value.name;
  return `-F ${quote(`${name}=@${path}`)}`;
}

// submitCommand submits the form; with the seed, so that it gives the same result.
export function submitCommand(model, fields) {
  const parts = fields.map(([name, value]) => model.urlencoded ? `--data-urlencode ${quote(`${name}=${value}`)}` : part(name, value));
  return [`curl ${settings.base_url}/v1/jobs/${model.id} ${keyHeader}`, ...parts].join(" \\\n  ");
}

// fetchCommand fetches what a job made.
export const fetchCommand = (id, name) => `curl -f ${settings.base_url}/v1/jobs/${id}/content ${keyHeader} -L -o ${quote(name)}`;

// chatCommand asks what the chat asked.
export const chatCommand = body => [
  `curl ${settings.inference_url}/v1/chat/completions`,
  `-H "authorization: Bearer $CUTROOM_API_KEY" -H 'content-type: application/json'`,
  `-N -d ${quote(JSON.stringify(body))}`,
].join(" \\\n  ");
