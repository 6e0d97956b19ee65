// Renders Markdown as elements. The library only parses the text, so HTML that a model writes is never interpreted.

import { Lexer } from "./marked.js";
import { button, copy, make } from "./dom.js";

// The schemes that links may use.
const safe = /^(https?|mailto):/i;

// deepest limits the nesting of lists and quotes. endless matches overlong words; nested matches lines that start with
// too many list or quote marks. Text beyond these limits is shown as plain text, because the library and the browser
// would take too long.
const deepest = 20, endless = /[!-~]{3000}/, nested = /^(?:[ \t]*(?:>|(?:[*+-]|\d+[.)])[ \t])){100}/m;

export function render(text) {
  if (endless.test(text) || nested.test(text)) return [text];
  try {
    return blocks(new Lexer({ gfm: true, breaks: true }).lex(text), 0);
  } catch {
    return [text]; // too deeply nested for the library
  }
}

const blocks = (tokens, depth) => tokens.map(token => block(token, depth)).filter(Boolean);

function block(token, depth) {
  if (depth > deepest) return make("p", {}, token.raw);
  switch (token.type) {
    case "heading": return make(`h${Math.min(6, token.depth + 2)}`, {}, inline(token.tokens));
    case "paragraph": return make("p", {}, inline(token.tokens));
    case "code": return code(token.text, (token.lang || "").split(/\s/)[0]);
    case "blockquote": return make("blockquote", {}, blocks(token.tokens, depth + 1));
    case "list": return make(token.ordered ? "ol" : "ul", { start: token.ordered && token.start !== 1 && token.start !== "" && token.start }, token.items.map(one => item(one, depth + 1)));
    case "table": return table(token);
    case "hr": return make("hr");
    case "space": case "def": return undefined;
    case "text": return make("span", {}, token.tokens ? inline(token.tokens) : plain(token));
    default: return make("p", {}, token.raw); // everything else, such as HTML, as plain text
  }
}

function item(one, depth) {
  const box = one.task && make("input", { type: "checkbox", disabled: true, checked: one.checked, "aria-label": one.checked ? "done" : "to do" });
  return make("li", { class: one.task && "task" }, box, blocks(one.tokens.filter(token => token.type !== "checkbox"), depth));
}

function table({ header, rows, align }) {
  const cells = (row, tag) => make("tr", {}, row.map((cell, i) => make(tag, { scope: tag === "th" && "col", "data-align": align[i] }, inline(cell.tokens))));
  return make("div", { class: "table", tabindex: 0, role: "region", "aria-label": "Table" }, make("table", {}, make("thead", {}, cells(header, "th")), make("tbody", {}, rows.map(row => cells(row, "td")))));
}

function code(text, language) {
  return make("figure", { class: "code" },
    make("figcaption", {}, make("span", {}, language || "Code"), button("copy", "Copy", () => copy(text, "The code was"), { "aria-label": "Copy the code" })),
    make("pre", { tabindex: 0, "aria-label": "Code" }, make("code", {}, text)));
}

const inline = (tokens = []) => tokens.map(one);

function one(token) {
  switch (token.type) {
    case "strong": return make("strong", {}, inline(token.tokens));
    case "em": return make("em", {}, inline(token.tokens));
    case "del": return make("del", {}, inline(token.tokens));
    case "codespan": return make("code", {}, token.text);
    case "br": return make("br");
    case "link": return link(token.href, inline(token.tokens));
    // Show a link instead of the picture: loading it would reveal the reader to its server.
    case "image": return link(token.href, [token.text || token.href]);
    case "text": case "escape": return token.tokens ? inline(token.tokens) : plain(token);
    default: return token.raw;
  }
}

const entities = { amp: "&", lt: "<", gt: ">", quot: "\"", nbsp: "\u00a0", "#39": "'" };

// plain decodes the entities that models write for some characters.
const plain = token => token.text.replace(/&(amp|lt|gt|quot|nbsp|#39);/g, (_, name) => entities[name]);

function link(address, words) {
  return safe.test(address) ? make("a", { href: address, target: "_blank", rel: "noopener noreferrer nofollow" }, words) : make("span", {}, words);
}
