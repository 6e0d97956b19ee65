// The Keys page: the account's permanent keys. Only admin keys can open it.

import { ask, dayOf, field, idOf, links, menu } from "./account.js";
import { ago, button, confirm, copy, make, say, signButton, toast } from "./dom.js";
import { publish, subscribe } from "./news.js";
import { inference, key as own, media, settings } from "./service.js";

export const open = section => new Keys(section);

const day = 86400e3;
const near = 14 * day; // a key that expires within this time is highlighted
const lives = [["", "Never"], [7, "In 7 days"], [30, "In 30 days"], [90, "In 90 days"], [365, "In a year"], ["date", "On a date"]];

// The groups of calls to which a key can be restricted.
const routes = [
  ["jobs", "Video jobs and their results"], ["images", "Image edits"], ["files", "Stored files"], ["realtime", "Realtime sessions"],
  ["inference", "Chats and other calls to language models"], ["usage", "Usage"], ["tokens", "Creating client tokens"], ["keys", "Keys, budgets and the audit log, for admin keys"],
];

const expired = key => Boolean(key.expires_at) && Date.parse(key.expires_at) <= Date.now();

class Keys {
  constructor(section) {
    this.keys = [];
    this.problem = make("p", { class: "notice", role: "alert", hidden: true });
    this.working = make("ul", { class: "rows" });
    this.revoked = make("ul", { class: "rows" });
    this.count = make("summary");
    this.past = make("details", { class: "past", hidden: true }, this.count, this.revoked);
    section.append(
      make("div", { class: "page-tools" }, links("keys", "keys"), button("add", "Create a key", () => this.ask(), { class: "primary", id: "make-key" })),
      make("p", { class: "note" }, "All keys of an account see the same jobs and files. Give each program its own key, so that you can revoke it separately."),
      this.problem, this.working, this.past);
    subscribe("keys", () => section.hidden || this.shown());
  }

  async shown() {
    const reading = this.reading = {};
    try {
      this.own ??= await idOf(own());
      const { keys } = await (await media("GET", "/v1/keys")).json();
      if (this.reading !== reading) return; // a later request has already been answered
      this.keys = keys;
      this.problem.hidden = true;
      this.show();
    } catch (refusal) {
      if (this.reading === reading) this.complain(refusal);
    }
  }

  complain(refusal) {
    this.problem.textContent = refusal.message;
    this.problem.hidden = false;
  }

  show() {
    const held = document.activeElement?.closest(".keys .rows li")?.dataset.id;
    const gone = key => key.revoked_at || expired(key), past = this.keys.filter(gone);
    this.working.replaceChildren(...this.keys.filter(key => !gone(key)).map(key => this.row(key)));
    this.revoked.replaceChildren(...past.map(key => this.row(key)));
    this.count.textContent = `${past.some(expired) ? "Revoked or expired" : "Revoked"} (${past.length})`;
    this.past.hidden = past.length === 0;
    if (held) [...this.working.children].find(row => row.dataset.id === held)?.querySelector("button")?.focus();
  }

  row(key) {
    const name = key.label || key.id, mine = key.id === this.own, gone = key.revoked_at || expired(key);
    const left = Date.parse(key.expires_at) - Date.now();
    const facts = [` · tier ${key.tier} · `, timed(key.revoked_at ? "revoked" : "created", key.revoked_at || key.created_at)];
    if (key.expires_at && !key.revoked_at) facts.push(" · ", timed(left > 0 ? "expires" : "expired", key.expires_at));
    const limits = [["Models", key.models], ["Calls", key.routes]].filter(([, list]) => list).map(([title, list]) => `${title}: ${list.join(", ")}`);
    return make("li", { "data-id": key.id },
      make("div", { class: "about" },
        make("p", {}, make("strong", {}, name), key.admin && make("span", { class: "badge" }, "Admin"), mine && make("span", { class: "badge" }, "This tab's key"),
          !gone && left < near && make("span", { class: "badge near" }, "Expires soon")),
        make("p", { class: "note" }, make("code", {}, key.id), facts),
        limits.length > 0 && make("p", { class: "note" }, limits.join(" · "))),
      // A key cannot revoke itself, so it gets no button.
      !gone && !mine && signButton("bin", `Revoke ${name}`, () => this.revoke(key, name), { class: "sign bad" }));
  }

  async revoke(key, name) {
    if (!await confirm(`Revoke ${name}?`, "Programs that use this key or its client tokens are rejected within seconds. This cannot be undone.", "Revoke")) return;
    try {
      await media("DELETE", `/v1/keys/${key.id}`);
    } catch (refusal) {
      if (refusal.status !== 404) return this.complain(refusal);
    }
    publish("keys");
    this.reading = undefined; // a request that is still running does not include the change
    key.revoked_at = new Date().toISOString();
    this.problem.hidden = true;
    this.show();
    document.getElementById("make-key").focus();
    toast(`${name} is revoked.`);
  }

  // ask opens a dialog that creates a key. It shows the secret only this once.
  ask() {
    const label = make("input", { id: "key-label", required: true, maxlength: 128, autocomplete: "off", placeholder: "render farm" });
    const admin = make("input", { type: "checkbox", class: "switch", id: "key-admin" });
    const life = menu("key-life", lives), until = make("input", { id: "key-until", type: "date", min: dayOf(Date.now() + day) });
    const untilField = field("Last day", until);
    untilField.hidden = true;
    life.addEventListener("change", () => {
      untilField.hidden = life.value !== "date";
      until.required = !untilField.hidden;
    });
    const models = new Limits("Models", settings.models.map(model => [model.id, model.title || ""])), groups = new Limits("Calls", routes);
    // The gateway's models are added to the list when the gateway has responded.
    inference("GET", "/v1/models").then(async answer => models.add((await answer.json()).data.filter(model => model.context_length).map(model => [model.id, ""])), () => {});
    ask("Create a key", [
      field("Label", label), make("label", { class: "toggle" }, admin, make("span", {}, "Admin: may create and revoke keys and set their budgets")),
      make("div", { class: "pair" }, field("Expires", life), untilField), models.element, groups.element,
    ], "Create the key", async dialog => {
      const expires = life.value === "date" ? Date.parse(`${until.value}T23:59:59`) : life.value && Date.now() + life.value * day;
      const made = await (await media("POST", "/v1/keys", { body: {
        label: label.value.trim(), admin: admin.checked, ...expires ? { expires_at: new Date(expires).toISOString() } : {}, ...models.chosen("models"), ...groups.chosen("routes"),
      } })).json();
      publish("keys");
      dialog.replaceChildren(...secretOf(made, () => dialog.close()));
      dialog.querySelector("#copy-key").focus();
      delete made.key;
      this.reading = undefined;
      this.keys.unshift(made);
      this.show();
      say("The key was created.");
    });
  }
}

// Limits is a list of things to which a key can be restricted. If nothing is selected, the key is not restricted.
class Limits {
  constructor(title, all) {
    this.title = title;
    this.count = make("summary");
    this.list = make("div", { class: "others key-limits", role: "group", "aria-label": title, on: { change: () => this.show() } });
    this.element = make("details", { class: "beside" }, this.count, this.list);
    this.add(all);
  }

  add(more) {
    this.list.append(...more.map(([value, words]) => make("label", {}, make("input", { type: "checkbox", value }), make("span", {}, value), words && make("small", {}, words))));
    this.show();
  }

  values() { return [...this.list.querySelectorAll(":checked")].map(input => input.value); }

  show() { this.count.textContent = `${this.title}: ${this.values().join(", ") || "all"}`; }

  chosen(name) { return this.values().length ? { [name]: this.values() } : {}; }
}

const timed = (what, time) => make("span", { title: new Date(time).toLocaleString() }, `${what} ${ago(time)}`);

function secretOf(made, close) {
  const shown = make("input", { id: "new-key", readonly: true, value: made.key, "aria-label": "The new key", on: { focus: event => event.target.select() } });
  return [
    make("h2", { id: "dialog-title" }, made.label),
    make("p", {}, "The key is shown only once. Store it where only its user can read it."),
    make("div", { class: "joined" }, shown, signButton("copy", "Copy the key", () => copy(shown.value, "Key"), { id: "copy-key" })),
    make("div", { class: "row end" }, button("", "Done", close, { class: "primary" })),
  ];
}
