// Functions that the account's pages share: Usage, Keys, Budgets and Audit.

import { button, make, number } from "./dom.js";
import { media } from "./service.js";

const families = {
  usage: [["usage", "Usage"], ["budgets", "Budgets"]],
  keys: [["keys", "Keys"], ["audit", "Audit"]],
};

// links returns the navigation between a family's pages. here is the id of the current page.
export const links = (family, here) => make("nav", { class: "choices", "aria-label": families[family].map(([, title]) => title).join(" and ") },
  families[family].map(([id, title]) => make("a", { href: `#${id}`, "aria-current": id === here && "page" }, make("span", {}, title))));

// cash formats an amount. Amounts below a tenth have two significant digits, so that small ones are not shown as
// zero.
export function cash(amount, currency) {
  const style = currency ? { style: "currency", currency } : {};
  const digits = amount > 0 && amount < 0.1 ? { maximumSignificantDigits: 2 } : { maximumFractionDigits: 2 };
  return new Intl.NumberFormat("en", { ...style, ...digits }).format(amount);
}

export const short = (value, style = {}) => new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3, ...style }).format(value);

// plural returns a count with its noun, such as "1 edit" or "2 edits".
export const plural = (count, one) => `${number(count)} ${one}${count === 1 ? "" : "s"}`;

export const units = {
  cost: { title: "Cost", words: (value, currency) => cash(value, currency) },
  tokens: { title: "Tokens", words: value => plural(value, "token") },
  jobs: { title: "Edits", words: value => plural(value, "edit") },
  session_seconds: { title: "Realtime seconds", words: value => plural(value, "realtime second") },
};

export const periods = { day: "a day", month: "a month" };

// idOf resolves to the id of a key, or to undefined if the browser cannot compute it: browsers hash only on HTTPS
// pages and on pages from localhost.
export async function idOf(key) {
  const sum = await crypto.subtle?.digest("SHA-256", new TextEncoder().encode(key));
  return sum && `key_${[...new Uint8Array(sum).slice(0, 6)].map(byte => byte.toString(16).padStart(2, "0")).join("")}`;
}

// keysOf resolves to a map of the account's keys by id.
export async function keysOf() {
  const { keys } = await (await media("GET", "/v1/keys")).json();
  return new Map(keys.map(key => [key.id, key]));
}

// nameOf returns a key's label, or its id. keys comes from keysOf.
export const nameOf = (id, keys) => keys?.get(id)?.label || id;

// dayOf returns the day in UTC.
export const dayOf = time => new Date(time).toISOString().slice(0, 10);

export const dayWords = (day, parts = { day: "numeric", month: "short" }) => new Date(day).toLocaleDateString("en-GB", { ...parts, timeZone: "UTC" });

// field returns a form field: the label, the control, and the hint.
export function field(label, control, hint) {
  if (hint) control.setAttribute("aria-describedby", `${control.id}-hint`);
  return make("div", { class: "field" }, make("label", { for: control.id }, label), control, hint && make("p", { class: "note", id: `${control.id}-hint` }, hint));
}

// menu returns a select element. options is a list of [value, words].
export const menu = (id, options, properties = {}) => make("select", { id, ...properties }, options.map(([value, words]) => make("option", { value }, words)));

// ask opens a dialog with a form. When the user submits it, send(dialog) is called. If send throws, the dialog shows
// the error. Otherwise send must close the dialog.
export function ask(title, fields, yes, send) {
  const refused = make("p", { class: "problem", role: "alert" });
  const enter = make("button", { class: "primary" }, yes);
  const dialog = make("dialog", { class: "dialog", "aria-labelledby": "dialog-title" });
  const submit = async event => {
    event.preventDefault();
    enter.disabled = true;
    refused.textContent = "";
    try {
      await send(dialog);
    } catch (refusal) {
      refused.textContent = refusal.message;
    }
    enter.disabled = false;
  };
  dialog.append(make("h2", { id: "dialog-title" }, title),
    make("form", { class: "new-key", on: { submit } }, fields, refused,
      make("div", { class: "row end" }, button("", "Cancel", () => dialog.close()), enter)));
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}
