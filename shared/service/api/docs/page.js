"use strict";
// Renders openapi.json, which the server provides next to this page.

const methods = ["get", "post", "put", "delete"];
let api, base, key = "";

// make creates an element. Properties become attributes, except for "text" and for event handlers (on…).
function make(tag, properties, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties || {})) {
    if (value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter(child => child !== undefined && child !== null));
  return element;
}

// follow returns the target of a $ref.
function follow(value) {
  while (value && value.$ref) value = value.$ref.slice(2).split("/").reduce((at, name) => at[name], api);
  return value;
}

// prose turns `…` in the text into code elements.
function prose(text) {
  return (text || "").split("`").map((piece, i) => i % 2 ? make("code", {}, piece) : piece);
}

const paragraphs = text => (text || "").trim().split(/\n\s*\n/).filter(Boolean).map(one => make("p", {}, prose(one)));

function typeOf(schema) {
  schema = follow(schema) || {};
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.join(" | ");
  if (schema.anyOf && !schema.type) return schema.anyOf.map(one => [typeOf(one), ...limitsOf(one)].join(" ")).join(" or ");
  const types = [schema.type || "any"].flat().map(type => {
    if (type === "array") return "array of " + typeOf(schema.items);
    if (type === "string" && schema.format === "binary") return "file";
    if (type === "string" && schema.format === "date-time") return "date-time";
    return type;
  });
  return types.join(" or ");
}

function limitsOf(schema) {
  const { minimum: least, maximum: most, maxLength, minLength, maxItems, pattern } = follow(schema);
  const said = [];
  if (least !== undefined && most !== undefined) said.push(`${least} to ${most}`);
  else if (least !== undefined) said.push(`at least ${least}`);
  else if (most !== undefined) said.push(`at most ${most}`);
  if (maxLength !== undefined) said.push(`${minLength || 0} to ${maxLength} characters`);
  if (maxItems !== undefined) said.push(`at most ${maxItems}`);
  if (pattern) said.push(`matches ${pattern}`);
  return said;
}

function field(name, schema, required, description, inside) {
  const resolved = follow(schema) || {};
  const facts = [typeOf(resolved), ...limitsOf(resolved)];
  if (resolved.default !== undefined) facts.push("default " + JSON.stringify(resolved.default));
  const text = description || schema.description || resolved.description;
  return make("div", { class: "field" },
    make("dt", {}, make("span", { class: "name" }, name), make("span", { class: "type" }, facts.join(", ")), required && make("span", { class: "must" }, "required") || ""),
    make("dd", {}, prose(text), inside));
}

// fields lists a schema's fields, including the fields of nested objects. around has the enclosing schemas, so that a
// recursive schema is listed only once.
function fields(schema, around = []) {
  schema = follow(schema) || {};
  if (around.includes(schema)) return make("p", {}, "The same fields as the enclosing object.");
  around = [...around, schema];
  if (schema.type === "array" || schema.items) return fields(schema.items, around);
  if (schema.anyOf && !schema.properties) {
    const choices = schema.anyOf.map(follow).filter(one => one.properties);
    return choices.length ? make("div", {}, choices.map((one, i) => [make("h4", {}, i ? "or" : "either"), paragraphs(one.description), fields(one, around)])) : undefined;
  }
  const list = Object.entries(schema.properties || {}).map(([name, one]) =>
    field(name, one, (schema.required || []).includes(name), "", fields(one, around)));
  return list.length ? make("dl", {}, list) : undefined;
}

function exampleOf(schema) {
  schema = follow(schema) || {};
  if (schema.anyOf && !schema.examples) return exampleOf(schema.anyOf[0]);
  return schema.examples && schema.examples[0];
}

// suggested returns a form field's initial value: its example, but not for URLs, because the service would really
// call them.
function suggested(schema) {
  return (follow(schema) || {}).format === "uri" ? undefined : exampleOf(schema);
}

const serverOf = path => ((api.paths[path] || {}).servers || [{ url: base }])[0].url.replace(/\/$/, "");

// credentialOf returns the header that carries the key. It returns no header if the operation needs no key.
function credentialOf(operation, key) {
  const [asked] = operation.security || [];
  if (!asked) return [];
  return asked.bearer ? [["authorization", "Bearer " + key]] : [["x-api-key", key]];
}

function figure(caption, text) {
  const pre = make("pre", { tabindex: "0" }, make("code", {}, text));
  const copy = make("button", { type: "button", class: "copy", onclick: async () => {
    await navigator.clipboard.writeText(pre.textContent);
    copy.textContent = "Copied";
    setTimeout(() => copy.textContent = "Copy", 1500);
  } }, "Copy");
  return make("figure", { class: "example" }, make("figcaption", {}, caption, navigator.clipboard ? copy : ""), pre);
}

let language = "curl"; // the language of all samples

// samples returns an element that shows the sample for the chosen language. texts holds pairs of a language and a
// sample.
function samples(texts) {
  const shown = figure("", "");
  const tabs = make("div", { class: "tabs", role: "group", "aria-label": "Language" });
  const show = () => {
    const [name, text] = texts.find(([name]) => name === language) || texts[0];
    shown.querySelector("code").textContent = text;
    tabs.querySelectorAll("button").forEach(button => button.setAttribute("aria-pressed", String(button.textContent === name)));
  };
  tabs.append(...texts.map(([name]) => make("button", { type: "button", onclick: () => {
    language = name;
    document.querySelectorAll(".samples").forEach(one => one.dispatchEvent(new Event("language")));
  } }, name)));
  shown.classList.add("samples");
  shown.addEventListener("language", show);
  shown.querySelector("figcaption").prepend(tabs);
  show();
  return shown;
}

function samplesOf(path, method, operation) {
  const request = requestOf(path, method, operation);
  return samples(languages.map(([name, write]) => [name, write(request)]));
}

function response(status, answer) {
  answer = follow(answer);
  const head = [make("span", { class: "status" + (status >= 400 ? " bad" : "") }, status), make("span", {}, prose(answer.description))];
  const headers = Object.entries(answer.headers || {}).filter(([name]) => name !== "x-request-id");
  const inside = [];
  for (const [type, media] of Object.entries(answer.content || {})) {
    inside.push(make("h4", {}, "Body ", make("small", {}, type)), fields(media.schema) || "");
  }
  if (headers.length) {
    inside.push(make("h4", {}, "Headers"), make("dl", {}, headers.map(([name, one]) => field(name, follow(one).schema, false, follow(one).description))));
  }
  if (!inside.length) return make("div", { class: "response" }, make("div", { class: "plain" }, head));
  return make("details", { class: "response" }, make("summary", {}, head), make("div", { class: "inside" }, inside));
}

// responses lists an operation's responses. Errors that many operations share are collapsed into one line.
function responses(operation) {
  const all = Object.entries(operation.responses);
  const shared = all.filter(([, answer]) => answer.$ref), own = all.filter(([, answer]) => !answer.$ref);
  return [own.map(([status, answer]) => response(status, answer)), shared.length ? make("details", { class: "response" },
    make("summary", {}, make("span", { class: "bad statuses" }, shared.map(([status]) => status).join(" ")), make("span", {}, "Refusals")),
    make("div", { class: "inside" }, shared.map(([status, answer]) => response(status, answer)))) : ""];
}

function bodyFields(operation) {
  const bodies = Object.entries((operation.requestBody || {}).content || {});
  const same = new Set(bodies.map(([, body]) => JSON.stringify(body.schema))).size === 1;
  if (same && bodies.length > 1) return [make("h4", {}, "Body ", make("small", {}, bodies.map(([type]) => type).join(" or "))), fields(bodies[0][1].schema)];
  return bodies.flatMap(([type, body]) => [make("h4", {}, "Body ", make("small", {}, type)), fields(body.schema)]);
}

function input(name, schema, example, file) {
  schema = follow(schema) || {};
  if (file) return make("input", { name, type: "file" });
  const values = schema.enum || (schema.type === "boolean" ? ["true", "false"] : undefined);
  if (values) return make("select", { name }, make("option", { value: "" }, ""), values.map(value => make("option", {}, value)));
  return make("input", { name, type: "text", autocomplete: "off", value: example === undefined ? "" : example });
}

// takesReferences matches paths whose file fields also accept the id of a stored file.
const takesReferences = /^\/v1\/(jobs|generate)\//;

function tryIt(currentPath, method, operation) {
  const parameters = (operation.parameters || []).map(follow).filter(one => one.in !== "header");
  const [type, body] = Object.entries((operation.requestBody || {}).content || {})[0] || [];
  const rows = parameters.map(one => [one.name, input("parameter:" + one.name, one.schema)]);
  if (type === "application/json") {
    const text = make("textarea", { name: "json", rows: 5, spellcheck: "false" });
    text.value = JSON.stringify(body.example || exampleOf(body.schema) || {}, null, 2);
    rows.push(["JSON", text]);
  } else if (type === "application/octet-stream") {
    rows.push(["bytes", make("input", { name: "bytes", type: "file" })]);
  } else if (body) {
    const properties = Object.entries(follow(body.schema).properties).filter(([name]) => !/\.\d+$/.test(name));
    for (const [name, schema] of properties) {
      const file = follow(schema).format === "binary";
      rows.push([name, input(name, schema, suggested(schema), file)]);
      if (file && takesReferences.test(currentPath())) rows.push([`${name}, stored`, make("input", { name: `stored:${name}`, type: "text", autocomplete: "off", placeholder: "file_… instead of a file" })]);
    }
  }
  const outcome = make("div", { class: "outcome", "aria-live": "polite" });
  const send = make("button", { class: "primary" }, "Send");
  const form = make("form", { onsubmit: async event => {
    event.preventDefault();
    send.disabled = true;
    try {
      outcome.replaceChildren(...await answerOf(form, currentPath(), method, operation, parameters, type));
    } catch (failure) {
      outcome.replaceChildren(make("pre", {}, "The request failed: " + failure.message));
    }
    send.disabled = false;
  } }, rows.flatMap(([label, control], i) => {
    control.id = `${operation.operationId}-${i}`;
    return [make("label", { for: control.id }, label), control];
  }), make("div", { class: "wide" }, send), outcome);
  return make("details", { class: "try" }, make("summary", {}, "Try it"), form);
}

// answerOf sends the form and returns elements that show the response.
async function answerOf(form, path, method, operation, parameters, type) {
  const query = new URLSearchParams(), server = serverOf(path);
  for (const one of parameters) {
    const value = form.elements["parameter:" + one.name].value;
    if (one.in === "path") path = path.replace(`{${one.name}}`, encodeURIComponent(value));
    else if (value) query.set(one.name, value);
  }
  const options = { method: method.toUpperCase(), headers: {} };
  for (const [name, text] of credentialOf(operation, key)) options.headers[name] = text;
  if (type === "application/json") {
    options.headers["content-type"] = type;
    options.body = form.elements.json.value;
  } else if (type === "application/octet-stream") {
    options.body = form.elements.bytes.files[0];
  } else if (type) {
    const data = [...new FormData(form)].filter(([name, value]) => !name.startsWith("parameter:") && (value.size === undefined ? value.trim() : value.size || value.name))
      .map(([name, value]) => [name.replace(/^stored:/, ""), typeof value === "string" ? value.trim() : value]);
    options.body = type === "multipart/form-data" ? new FormData() : new URLSearchParams();
    for (const [name, value] of data) options.body.append(name, value);
  }
  const answer = await fetch(server + path + (query.size ? "?" + query : ""), options);
  const kind = answer.headers.get("content-type") || "";
  const head = [`${answer.status} ${answer.statusText}`, ...[...answer.headers].map(([name, value]) => `${name}: ${value}`)].join("\n");
  const shown = [make("pre", {}, head)];
  if (/^(image|video)\//.test(kind) && answer.ok) {
    const source = URL.createObjectURL(await answer.blob());
    shown.push(kind.startsWith("image") ? make("img", { src: source, alt: "The result" }) : make("video", { src: source, controls: true, loop: true }));
    return shown;
  }
  let text = await answer.text();
  if (kind.startsWith("application/json")) text = JSON.stringify(JSON.parse(text), null, 2);
  if (text) shown.push(make("pre", {}, text.slice(0, 100000)));
  return shown;
}

// section shows one operation. others are the same operation under other names.
function section(one, others) {
  const { path, method, operation } = one;
  let chosen = one;
  const shownPath = make("span", { class: "path" }, path);
  let line = samplesOf(path, method, operation);
  const choose = other => {
    chosen = other;
    shownPath.textContent = other.path;
    const next = samplesOf(other.path, method, other.operation);
    line.replaceWith(next);
    line = next;
    names.querySelectorAll("button").forEach(button => button.setAttribute("aria-pressed", button.value === other.path));
  };
  const names = make("div", { class: "names", role: "group", "aria-label": "Names of the model" }, [one, ...others].map(other =>
    make("button", { type: "button", value: other.path, class: other.operation.deprecated && !operation.deprecated && "old", title: other.operation.deprecated ? "deprecated" : undefined,
      "aria-pressed": String(other === one), onclick: () => choose(other) }, other.path.split("/").pop())));
  const parameters = (operation.parameters || []).map(follow);
  const kinds = { path: "Path", query: "Query", header: "Headers" };
  const answer = (follow(operation.responses["200"]) || {}).content || {};
  const example = exampleOf((answer["application/json"] || {}).schema);
  return make("section", { class: "operation", id: operation.operationId },
    make("h3", {}, make("a", { href: "#" + operation.operationId }, operation.summary)),
    make("div", { class: "columns" },
      make("div", {},
        make("p", { class: "call" }, make("span", { class: "method " + method }, method.toUpperCase()), shownPath, operation.deprecated ? make("span", { class: "old-note" }, "deprecated") : ""),
        others.length ? names : "",
        paragraphs(operation.description),
        Object.entries(kinds).flatMap(([place, title]) => {
          const list = parameters.filter(parameter => parameter.in === place);
          return list.length ? [make("h4", {}, title), make("dl", {}, list.map(parameter => field(parameter.name, parameter.schema, parameter.required, parameter.description)))] : [];
        }),
        bodyFields(operation),
        make("h4", {}, "Responses"),
        responses(operation)),
      make("div", { class: "aside" }, line,
        example === undefined ? "" : figure("Response", JSON.stringify(example, null, 2)),
        tryIt(() => chosen.path, method, operation))));
}

// operations returns the tag's operations, each with its variants under other names.
function operations(tag) {
  const all = Object.entries(api.paths).flatMap(([path, item]) => methods.filter(method => item[method])
    .map(method => ({ path, method, operation: item[method] }))).filter(one => one.operation.tags.includes(tag));
  const first = all.filter(one => !one.operation["x-alias-of"]);
  return first.map(one => [one, all.filter(other => other.method === one.method && other.operation["x-alias-of"] &&
    one.path === other.path.replace(/[^/]+$/, other.operation["x-alias-of"]))]);
}

const plain = text => text.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "");

// namesOf returns the names of all fields in a schema. around has the enclosing schemas.
function namesOf(schema, around = []) {
  schema = follow(schema) || {};
  if (around.includes(schema)) return [];
  const within = one => namesOf(one, [...around, schema]);
  return [...(schema.anyOf || []).flatMap(within), ...(schema.items ? within(schema.items) : []), ...Object.entries(schema.properties || {}).flatMap(([name, one]) => [name, ...within(one)])];
}

// wordsOf returns the text that a search looks in: the operation's name, fields and description.
function wordsOf(tag, path, operation) {
  const bodies = Object.values((operation.requestBody || {}).content || {});
  return [tag.name, operation.summary, path, operation.description || "", ...(operation.parameters || []).map(one => follow(one).name), ...new Set(bodies.flatMap(body => namesOf(body.schema)))];
}

// narrow hides all links except those to operations that contain the text. If a field contains it, the link also
// names the field.
function narrow(nav, nothing, text) {
  const wanted = plain(text);
  nav.querySelectorAll("a").forEach(link => {
    link.hidden = !plain(link.textContent + link.title + link.dataset.words).includes(wanted);
    link.querySelector("i")?.remove();
    const field = wanted && !link.hidden && link.dataset.words.split(" ").find(word => word.includes("_") && plain(word).includes(wanted));
    if (field && !plain(link.textContent).includes(wanted)) link.append(make("i", {}, field));
  });
  nav.querySelectorAll("h2").forEach(title => title.hidden = !title.nextElementSibling.querySelector("a:not([hidden])"));
  nothing.hidden = Boolean(nav.querySelector("a:not([hidden])"));
  nothing.textContent = `Nothing matches “${text}”.`;
}

function show() {
  const main = document.getElementById("top"), nav = document.getElementById("nav");
  document.title = api.info.title;
  const keyInput = make("input", { id: "key", type: "password", autocomplete: "off", spellcheck: "false", placeholder: "ck_… or ek_…", oninput: event => key = event.target.value.trim() });
  const filter = make("input", { id: "filter", type: "search", placeholder: "Filter", "aria-label": "Filter operations", oninput: () => narrow(nav, nothing, filter.value) });
  const nothing = make("p", { id: "nothing", role: "status", hidden: true });
  main.replaceChildren(make("div", { class: "intro" },
    make("h1", {}, api.info.title, make("span", { class: "version" }, api.info.version)),
    make("p", { class: "lead" }, api.info.summary), paragraphs(api.info.description)),
    make("div", { class: "key" }, make("label", { for: "key" }, "Key for “Try it”"), keyInput,
      make("p", {}, prose(api.components.securitySchemes.key.description)), make("p", {}, "The key stays in this page until the page is closed.")));
  nav.replaceChildren(filter, nothing);
  for (const tag of api.tags) {
    const list = operations(tag.name);
    if (!list.length) continue;
    main.append(make("section", { class: "group" }, make("h2", {}, tag.name), make("p", {}, prose(tag.description)), list.map(([one, others]) => section(one, others))));
    nav.append(make("h2", {}, tag.name), make("div", {}, list.map(([{ path, method, operation }, others]) =>
      make("a", { href: "#" + operation.operationId, "data-words": wordsOf(tag, path, operation).join(" "), title: [path, ...others.map(other => other.path)].join("\n"), class: operation.deprecated && "old" },
        make("b", { class: method }, method === "delete" ? "DEL" : method.toUpperCase()), make("span", {}, /^create_job|^generate/.test(operation.operationId) ? path.replace(/^\/v1\/(jobs\/)?/, "") : operation.summary)))));
  }
  const group = main.querySelector("#get_realtime_quota")?.closest(".group");
  if (group) {
    group.append(protocol());
    nav.querySelector("a[href='#get_realtime_quota']").parentElement.append(make("a", { href: "#realtime_protocol", "data-words": "realtime stream websocket protocol messages frames " + [...sent, ...received].flat().join(" ") }, make("b", { class: "get" }, "WS"), make("span", {}, "The messages of a session")));
  }
  const links = new Map([...nav.querySelectorAll("a")].map(link => [link.hash.slice(1), link]));
  const watch = new IntersectionObserver(entries => {
    for (const entry of entries.filter(entry => entry.isIntersecting)) {
      links.forEach(link => link.removeAttribute("aria-current"));
      links.get(entry.target.id).setAttribute("aria-current", "true");
    }
  }, { rootMargin: "-10% 0px -75% 0px" });
  main.querySelectorAll(".operation").forEach(one => watch.observe(one));
  const menu = document.getElementById("menu");
  const open = is => { nav.classList.toggle("open", is); menu.setAttribute("aria-expanded", is); };
  menu.addEventListener("click", () => open(!nav.classList.contains("open")));
  nav.addEventListener("click", event => event.target.closest("a") && open(false));
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (target && target !== main) target.scrollIntoView();
}

fetch("openapi.json").then(answer => {
  if (!answer.ok) throw new Error("status " + answer.status);
  return answer.json();
}).then(described => {
  api = described;
  base = new URL(api.servers[0].url, location.href).href.replace(/\/$/, "");
  show();
}).catch(failure => {
  document.getElementById("top").replaceChildren(make("p", {}, "Cannot show the documentation: " + failure.message));
  throw failure; // shows the failing line in the browser's console
});
