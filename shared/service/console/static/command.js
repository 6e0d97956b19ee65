// Command lines for a terminal that do what the page did.

import { settings } from "./service.js";

// obeyed are the characters that a terminal acts on when a line is pasted. File
// names and model output could use them to edit the line unnoticed.
const obeyed = /[\0-\t\v-\x1f\x7f-\x9f]/;

// octal returns a character's bytes as octal escapes.
const octal = character => Array.from(new TextEncoder().encode(character), byte => "\\" + byte.toString(8).padStart(3, "0")).join("");

// quote quotes a text as one word for a POSIX shell. A text that a terminal would
// act on is written in dollar-single-quotes (POSIX.1-2024), which bash, zsh and ksh
// support.
export const quote = text => {
  if (/^[\w@%+=:,./-]+$/.test(text)) return text;
  if (!obeyed.test(text)) return `'${text.replaceAll("'", `'\\''`)}'`;
  return `$'${text.replace(/['\\]/g, "\\$&").replace(new RegExp(obeyed, "g"), octal)}'`;
};

const keyHeader = `-H "x-api-key: $CUTROOM_API_KEY"`;

// part returns a form field as curl takes it. A file is one that has a name. A name in double quotes may contain
// the characters that curl would otherwise interpret.
function part(name, value) {
  if (typeof value !== "object") return `--form-string ${quote(`${name}=${value}`)}`;
  const path = /[;,"\\]/.test(value.name) ? `"${value.name.replace(/["\\]/g, "\\$&")}"` : value.name;
  return `-F ${quote(`${name}=@${path}`)}`;
}

// submitCommand submits the form, with the seed, so that the result is the same.
export function submitCommand(model, fields) {
  const parts = fields.map(([name, value]) => model.urlencoded ? `--data-urlencode ${quote(`${name}=${value}`)}` : part(name, value));
  return [`curl ${settings.base_url}/v1/jobs/${model.id} ${keyHeader}`, ...parts].join(" \\\n  ");
}

// fetchCommand fetches the result of a job.
export const fetchCommand = (id, name) => `curl -f ${settings.base_url}/v1/jobs/${id}/content ${keyHeader} -L -o ${quote(name)}`;

// chatCommand sends the chat's last request.
export const chatCommand = body => [
  `curl ${settings.inference_url}/v1/chat/completions`,
  `-H "authorization: Bearer $CUTROOM_API_KEY" -H 'content-type: application/json'`,
  `-N -d ${quote(JSON.stringify(body))}`,
].join(" \\\n  ");
