// Functions that the account's pages share.

import { button, make, number } from "./dom.js";
import { media } from "./service.js";

const families = {
  usage: [["usage", "Usage"], ["budgets", "Budgets"]],
  keys: [["keys", "Keys"], ["audit", "Audit"]],
};

// here is the current page.
export const links = (family, here) => make("nav", { class: "choices", "aria-label": families[family].map(([, title]) => title).join(" and ") },
  families[family].map(([id, title]) => make("a", { href: `#${id}`, "aria-current": id === here && "page" }, make("span", {}, title))));

// Amounts below a tenth keep two digits, so that small amounts are not shown as zero.
export function cash(amount, currency) {
  const style = currency ? { style: "currency", currency } : {};
  const digits = amount > 0 && amount < 0.1 ? { maximumSignificantDigits: 2 } : { maximumFractionDigits: 2 };
  return new Intl.NumberFormat("en", { ...style, ...digits }).format(amount);
}

export const short = (value, style = {}) => new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3, ...style }).format(value);

// plural returns a count of things, such as "1 edit" or "2 edits".
export const plural = (count, one) => `${number(count)} ${one}${count === 1 ? "" : "s"}`;

export const units = {
  cost: { title: "Cost", words: (value, currency) => cash(value, currency) },
  tokens: { title: "Tokens", words: value => plural(value, "token") },
  jobs: { title: "Edits", words: value => plural(value, "edit") },
  session_seconds: { title: "Realtime seconds", words: value => plural(value, "realtime second") },
};

export const periods = { day: "a day", month: "a month" };

// idOf returns the id of a key, undefined if the browser cannot compute it: browsers hash only on
// HTTPS pages and on pages from this machine.
export async function idOf(key) {
  const sum = await crypto.subtle?.digest("SHA-256", new TextEncoder().encode(key));
  return sum && `key_${[...new Uint8Array(sum).slice(0, 6)].map(byte => byte.toString(16).padStart(2, "0")).join("")}`;
}

// keysOf resolves to the keys of the account by id.
export async function keysOf() {
  const { keys } = await (await media("GET", "/v1/keys")).json();
  return new Map(keys.map(key => [key.id, key]));
}

// keys comes from keysOf.
export const nameOf = (id, keys) => keys?.get(id)?.label || id;

// The day is in UTC.
export const dayOf = time => new Date(time).toISOString().slice(0, 10);

export const dayWords = (day, parts = { day: "numeric", month: "short" }) => new Date(day).toLocaleDateString("en-GB", { ...parts, timeZone: "UTC" });

// The label is above the control, the hint below.
export function field(label, control, hint) {
  if (hint) control.setAttribute("aria-describedby", `${control.id}-hint`);
  return make("div", { class: "field" }, make("label", { for: control.id }, label), control, hint && make("p", { class: "note", id: `${control.id}-hint` }, hint));
}

// options is a list of [value, words].
export const menu = (id, options, properties = {}) => make("select", { id, ...properties }, options.map(([value, words]) => make("option", { value }, words)));

// ask opens a dialog with a form. Submitting it calls send(dialog). If send throws, the dialog
// shows the error; otherwise send closes the dialog.
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
