// The page Keys: the permanent keys of the account, shown for admin keys.

import { ago, button, confirm, copy, make, say, signButton, toast } from "./dom.js";
import { hear, tell } from "./news.js";
import { key as own, media } from "./service.js";

export const keysPage = { id: "keys", title: "Keys", sign: "keys", admin: true, open: section => new Keys(section) };

// mayKeepKeys reports whether the key of this tab is an admin key.
export async function mayKeepKeys() {
  try {
    await media("GET", "/v1/keys");
    return true;
  } catch {
    return false; // an ordinary key, or a service without admin keys
  }
}

// idOf returns the id of a key, undefined if the browser cannot compute it:
// browsers hash only on pages from HTTPS or from this machine.
async function idOf(key) {
  const sum = await crypto.subtle?.digest("SHA-256", new TextEncoder().encode(key));
  return sum && `key_${[...new Uint8Array(sum).slice(0, 6)].map(byte => byte.toString(16).padStart(2, "0")).join("")}`;
}

class Keys {
  constructor(section) {
    this.keys = [];
    this.problem = make("p", { class: "notice", role: "alert", hidden: true });
    this.working = make("ul", { class: "keys" });
    this.revoked = make("ul", { class: "keys" });
    this.count = make("summary");
    this.past = make("details", { class: "past", hidden: true }, this.count, this.revoked);
    section.append(
      make("div", { class: "page-tools" },
        make("p", { class: "note" }, "All keys of an account see the same jobs and files. Give each program one of its own, so that you can revoke it alone."),
        button("add", "Make a key", () => this.ask(), { class: "primary", id: "make-key" })),
      this.problem, this.working, this.past);
    hear("keys", () => section.hidden || this.shown());
  }

  async shown() {
    try {
      this.own ??= await idOf(own());
      this.keys = (await (await media("GET", "/v1/keys")).json()).keys;
      this.problem.hidden = true;
      this.show();
    } catch (refusal) {
      this.complain(refusal);
    }
  }

  complain(refusal) {
    this.problem.textContent = refusal.message;
    this.problem.hidden = false;
  }

  show() {
    const past = this.keys.filter(key => key.revoked_at);
    this.working.replaceChildren(...this.keys.filter(key => !key.revoked_at).map(key => this.row(key)));
    this.revoked.replaceChildren(...past.map(key => this.row(key)));
    this.count.textContent = `Revoked (${past.length})`;
    this.past.hidden = past.length === 0;
  }

  row(key) {
    const name = key.label || key.id, mine = key.id === this.own;
    const when = key.revoked_at ? `revoked ${ago(key.revoked_at)}` : `created ${ago(key.created_at)}`;
    return make("li", { "data-id": key.id },
      make("div", { class: "about" },
        make("p", {}, make("strong", {}, name), key.admin && make("span", { class: "badge" }, "Admin"), mine && make("span", { class: "badge" }, "This tab's key")),
        make("p", { class: "note" }, make("code", {}, key.id), ` · tier ${key.tier} · `, make("span", { title: key.revoked_at || key.created_at }, when))),
      // A key cannot revoke itself.
      !key.revoked_at && !mine && signButton("bin", `Revoke ${name}`, () => this.revoke(key, name)));
  }

  async revoke(key, name) {
    if (!await confirm(`Revoke ${name}?`, "What uses it is refused within seconds, and so are the client tokens that it minted. This cannot be undone.", "Revoke")) return;
    try {
      await media("DELETE", `/v1/keys/${key.id}`);
    } catch (refusal) {
      if (refusal.status !== 404) return this.complain(refusal);
    }
    tell("keys");
    key.revoked_at = new Date().toISOString();
    this.problem.hidden = true;
    this.show();
    document.getElementById("make-key").focus();
    toast(`${name} is revoked.`);
  }

  // ask creates a key in a dialog, which shows its secret only this once.
  ask() {
    const label = make("input", { id: "key-label", required: true, maxlength: 128, autocomplete: "off", placeholder: "render farm", "aria-describedby": "key-refused" });
    const admin = make("input", { type: "checkbox", class: "switch", id: "key-admin" });
    const refused = make("p", { id: "key-refused", class: "problem", role: "alert" });
    const enter = make("button", { class: "primary" }, "Make the key");
    const dialog = make("dialog", { class: "dialog", "aria-labelledby": "dialog-title" });
    const submit = async event => {
      event.preventDefault();
      enter.disabled = true;
      try {
        const made = await (await media("POST", "/v1/keys", { body: { label: label.value.trim(), admin: admin.checked } })).json();
        tell("keys");
        dialog.replaceChildren(...secretOf(made, () => dialog.close()));
        dialog.querySelector("#copy-key").focus();
        delete made.key;
        this.keys.unshift(made);
        this.show();
        say("The key is made.");
      } catch (refusal) {
        refused.textContent = refusal.message;
      }
      enter.disabled = false;
    };
    dialog.append(make("h2", { id: "dialog-title" }, "Make a key"),
      make("form", { class: "new-key", on: { submit } },
        make("div", { class: "field" }, make("label", { for: "key-label" }, "Label"), label),
        make("label", { class: "toggle" }, admin, make("span", {}, "Admin: may make and revoke keys")),
        refused,
        make("div", { class: "row end" }, make("button", { type: "button", on: { click: () => dialog.close() } }, "Cancel"), enter)));
    dialog.addEventListener("close", () => dialog.remove());
    document.body.append(dialog);
    dialog.showModal();
  }
}

// secretOf returns the content of the dialog for a new key.
function secretOf(made, close) {
  const shown = make("input", { id: "new-key", readonly: true, value: made.key, "aria-label": "The new key", on: { focus: event => event.target.select() } });
  return [
    make("h2", { id: "dialog-title" }, made.label),
    make("p", {}, "This is the one time that the key is shown. Keep it where only its user can read it."),
    make("div", { class: "joined" }, shown, signButton("copy", "Copy the key", () => copy(shown.value, "Key"), { id: "copy-key" })),
    make("div", { class: "row end" }, button("", "Done", close, { class: "primary" })),
  ];
}
