// The lines for a terminal that do what the page has done.

import { settings } from "./service.js";

// obeyed are the characters that a terminal acts on when a line is pasted: names of
// files and answers of models could edit the line with them, unseen.
const obeyed = /[\0-\t\v-\x1f\x7f-\x9f]/;

// octal writes a character as its bytes.
const octal = character => Array.from(new TextEncoder().encode(character), byte => "\\" + byte.toString(8).padStart(3, "0")).join("");

// quote makes one word of a text, for a POSIX shell; one that a terminal would act
// on in dollar-single-quotes (POSIX.1-2024), as bash, zsh and ksh have them.
export const quote = text => {
  if (/^[\w@%+=:,./-]+$/.test(text)) return text;
  if (!obeyed.test(text)) return `'${text.replaceAll("'", `'\\''`)}'`;
  return `$'${text.replace(/['\\]/g, "\\$&").replace(new RegExp(obeyed, "g"), octal)}'`;
};

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
