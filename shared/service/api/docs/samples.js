"use strict";
// Writes samples that call an operation: with curl, in Python and in JavaScript. All are derived from one description
// of the request.

// requestOf returns the description of a sample call: {method, url, headers, form, json, bytes, save}. form is a list
// of [name, value] pairs; for a file, the value is {file}.
function requestOf(path, method, operation) {
  const request = { method: method.toUpperCase(), url: serverOf(path), headers: credentialOf(operation, "") };
  const parameters = (operation.parameters || []).map(follow);
  request.url += parameters.filter(one => one.in === "path").reduce((at, one) => at.replace(`{${one.name}}`, one.name.toUpperCase()), path);
  const [type, body] = Object.entries((operation.requestBody || {}).content || {})[0] || [];
  if (type === "application/json") request.json = body.example || exampleOf(body.schema) || {};
  else if (type === "application/octet-stream") request.bytes = "film.mp4";
  else if (body) {
    request.encoded = type !== "multipart/form-data";
    const schema = follow(body.schema);
    request.form = Object.entries(schema.properties).flatMap(([name, one]) => {
      if (follow(one).format === "binary") return (schema.required || []).includes(name) ? [[name, { file: fileFor(body, name) }]] : [];
      return suggested(one) === undefined ? [] : [[name, String(suggested(one))]];
    });
  }
  const answer = follow((operation.responses || {})["200"]) || {};
  const types = Object.keys(answer.content || {});
  if (types.some(one => /^(video|image)\//.test(one))) request.save = types[0].startsWith("video") ? "edited.mp4" : "edited.png";
  request.streams = types.includes("text/event-stream") && !types.includes("application/json");
  request.empty = !types.length;
  return request;
}

function fileFor(body, name) {
  const kind = ((body.encoding || {})[name] || {}).contentType || "";
  return kind.startsWith("image") ? "photo.jpg" : kind.startsWith("video") ? "clip.mp4" : "file";
}

const quoted = text => /^[\w@%+=:,./-]+$/.test(text) ? text : "'" + text.replaceAll("'", "'\\''") + "'";

function curl(request) {
  const words = [`curl ${request.url}`];
  // Use curl -f for downloads: without it, curl would save an error message as the result.
  if (request.save) words[0] = words[0].replace("curl ", "curl -f ");
  if (request.streams) words[0] = words[0].replace("curl ", "curl -N ");
  if (request.method !== "GET" && !(request.method === "POST" && (request.json || request.form || request.bytes))) words[0] = words[0].replace("curl ", `curl -X ${request.method} `);
  for (const [name, text] of request.headers) words.push(`-H "${name}: ${text}$CUTROOM_API_KEY"`);
  if (request.json) words.push("-H 'content-type: application/json'", `-d ${quoted(JSON.stringify(request.json))}`);
  if (request.bytes) words.push(`--data-binary @${request.bytes}`);
  for (const [name, value] of request.form || []) words.push(`${request.encoded ? "--data-urlencode" : "-F"} ${quoted(`${name}=${value.file ? "@" + value.file : value}`)}`);
  if (request.save) words.push(`-o ${request.save}`);
  return words.join(" \\\n  ");
}

// literal writes a JSON value as a Python literal.
function literal(value, indent = "") {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value !== "object") return JSON.stringify(value);
  const inner = indent + "    ", list = Array.isArray(value);
  const parts = Object.entries(value).map(([name, one]) => inner + (list ? "" : JSON.stringify(name) + ": ") + literal(one, inner));
  return parts.length ? `${list ? "[" : "{"}\n${parts.join(",\n")},\n${indent}${list ? "]" : "}"}` : list ? "[]" : "{}";
}

// python writes a program that uses the library requests.
function python(request) {
  const lines = [`requests.${request.method.toLowerCase()}(`, `    ${JSON.stringify(request.url)},`];
  const headers = request.headers.map(([name, text]) => `"${name}": ${text ? `"${text}" + ` : ""}os.environ["CUTROOM_API_KEY"]`);
  if (headers.length) lines.push(`    headers={${headers.join(", ")}},`);
  if (request.json) lines.push(`    json=${literal(request.json, "    ")},`);
  if (request.bytes) lines.push(`    data=open("${request.bytes}", "rb"),`);
  const files = (request.form || []).filter(([, value]) => value.file), texts = (request.form || []).filter(([, value]) => !value.file);
  if (files.length) lines.push(`    files={${files.map(([name, value]) => `"${name}": open("${value.file}", "rb")`).join(", ")}},`);
  if (texts.length) lines.push(`    data=${literal(Object.fromEntries(texts), "    ")},`);
  if (request.save || request.streams) lines.push("    stream=True,");
  lines.push("    timeout=60,", ")");
  const rest = ["answer.raise_for_status()"];
  if (request.save) rest.push(`with open("${request.save}", "wb") as file:`, "    for piece in answer.iter_content(1 << 20):", "        file.write(piece)");
  else if (request.streams) rest.push("for line in answer.iter_lines(decode_unicode=True):", "    print(line)");
  else if (!request.empty) rest.push("print(answer.json())");
  return [...(headers.length ? ["import os", ""] : []), "import requests", "", `answer = ${lines.join("\n")}`, ...rest].join("\n");
}

// javascript writes a module for Node.js. It also runs in a browser if the file inputs are replaced.
function javascript(request) {
  const files = (request.form || []).some(([, value]) => value.file) || request.bytes;
  const lines = [];
  if (files) lines.push("import { openAsBlob } from \"node:fs\";");
  if (request.save) lines.push("import { writeFile } from \"node:fs/promises\";");
  if (lines.length) lines.push("");
  if (request.form) {
    lines.push(`const body = new ${request.encoded ? "URLSearchParams" : "FormData"}();`);
    for (const [name, value] of request.form) lines.push(`body.append("${name}", ${value.file ? `await openAsBlob("${value.file}"), "${value.file}"` : JSON.stringify(value)});`);
  }
  const headers = request.headers.map(([name, text]) => `"${name}": ${text ? `"${text}" + ` : ""}process.env.CUTROOM_API_KEY`);
  if (request.json) headers.push("\"content-type\": \"application/json\"");
  const options = [`  method: "${request.method}",`];
  if (headers.length) options.push(`  headers: { ${headers.join(", ")} },`);
  if (request.json) options.push(`  body: JSON.stringify(${JSON.stringify(request.json, null, 2).replaceAll("\n", "\n  ")}),`);
  else if (request.form) options.push("  body,");
  else if (request.bytes) options.push(`  body: await openAsBlob("${request.bytes}"),`);
  lines.push(`const answer = await fetch("${request.url}", {`, ...options, "});", "if (!answer.ok) throw new Error(await answer.text());");
  if (request.save) lines.push(`await writeFile("${request.save}", answer.body);`);
  else if (request.streams) lines.push("for await (const text of answer.body.pipeThrough(new TextDecoderStream())) console.log(text);");
  else if (!request.empty) lines.push("console.log(await answer.json());");
  return lines.join("\n");
}

const languages = [["curl", curl], ["Python", python], ["JavaScript", javascript]];
