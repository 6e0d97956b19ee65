// The Audit page. It lists changes that admins and the operator made, newest first. Only admin keys can open it.

import { dayOf, keysOf, links, nameOf, periods, units } from "./account.js";
import { arrange, button, icon, make, since } from "./dom.js";
import { subscribe } from "./news.js";
import { settle } from "./router.js";
import { media } from "./service.js";

export const open = section => new Audit(section);

const pageSize = 25, mostOfPage = 1000;
const titles = { "key.created": "Key created", "key.revoked": "Key revoked", "budget.set": "Budget set", "budget.deleted": "Budget removed" };

class Audit {
  constructor(section) {
    this.problem = make("p", { class: "notice", role: "alert", hidden: true });
    this.list = make("ol", { class: "rows", "aria-label": "Changes" });
    this.none = make("div", { class: "blankslate", hidden: true }, icon("docs"), make("h2", {}, "No changes"), this.why = make("p", {}));
    this.more = button("add", "More changes", () => this.next(), { hidden: true });
    this.bounds = ["from", "to"].map(name => make("input", { type: "date", name, max: dayOf(Date.now()), on: { change: () => {
      settle("audit", [], this.asked());
      this.read();
    } } }));
    section.append(
      make("div", { class: "page-tools" }, links("keys", "audit"),
        make("div", { class: "row" }, this.bounds.map((input, i) => make("label", { class: "kept-for" }, ["From", "To"][i], input)))),
      make("p", { class: "note" }, "All changes to keys and budgets by admins and the operator. Entries cannot be changed and are kept for 400 days. Days are in UTC."),
      this.problem, this.list, this.none, make("div", { class: "row end" }, this.more));
    subscribe("keys", () => section.hidden || this.read());
    subscribe("budgets", () => section.hidden || this.read());
  }

  asked() { return Object.fromEntries(this.bounds.map(({ name, value }) => [name, value])); }

  shown({ query }) {
    for (const input of this.bounds) input.value = query.get(input.name) || "";
    return this.read();
  }

  // read reads the list again. Rows that have not changed stay in place.
  read() {
    this.reading = this.readAnew(this.turn = {});
    return this.reading;
  }

  async readAnew(turn) {
    const [page, keys] = await Promise.all([this.page(Math.min(mostOfPage, Math.max(pageSize, this.list.children.length))), keysOf().catch(() => this.keys)]);
    if (!page || this.turn !== turn) return;
    this.keys = keys;
    const rows = new Map([...this.list.children].map(row => [row.dataset.id, row]));
    arrange(this.list, page.entries.map(entry => rows.get(entry.id) || this.row(entry)));
    this.settle(page);
  }

  async next() {
    const cursor = this.cursor, page = await this.page(pageSize, cursor);
    if (!page) return;
    await this.reading;
    if (this.cursor !== cursor) return this.next(); // the list was read again while this page was loading
    const rows = page.entries.map(entry => this.row(entry));
    this.list.append(...rows);
    rows[0]?.querySelector("summary").focus();
    this.settle(page);
  }

  async page(limit, cursor) {
    const params = Object.entries({ limit, cursor, ...this.asked() }).filter(([, value]) => value);
    try {
      const page = await (await media("GET", `/v1/audit?${new URLSearchParams(params)}`)).json();
      this.problem.hidden = true;
      return page;
    } catch (refusal) {
      this.problem.textContent = refusal.message;
      this.problem.hidden = false;
      return undefined;
    }
  }

  settle({ next_cursor: next }) {
    this.cursor = next;
    this.more.hidden = next === null;
    this.none.hidden = this.list.children.length > 0;
    this.why.textContent = this.bounds.some(({ value }) => value) ? "No changes on these days." : "Changes to keys and budgets appear here.";
  }

  row(entry) {
    const { before, after } = entry, who = entry.by === "operator" ? "the operator" : nameOf(entry.by, this.keys);
    const names = Object.keys({ ...before, ...after }).filter(name => (before?.[name] ?? after?.[name]) !== null);
    const changed = names.filter(name => text(before?.[name]) !== text(after?.[name]));
    // The summary lists the changes or, for a new or deleted budget, its limit.
    const limit = (after || before)?.limit;
    const news = before && after ? changed.map(name => `${words(name)} ${text(before[name])} → ${text(after[name])}`).join(", ") : limit !== undefined && `limit ${text(limit)}`;
    return make("li", { "data-id": entry.id },
      make("div", { class: "about" },
        make("p", {}, make("strong", {}, titles[entry.action] || entry.action), make("span", {}, this.subject(entry))),
        make("p", { class: "note" }, `by ${who} · `, since(entry.at), ` · ${new Date(entry.at).toLocaleString()}`),
        make("details", { class: "asked" }, make("summary", {}, news || (after ? "Created" : "Removed")),
          make("div", { class: "wide-table", tabindex: 0, role: "region", "aria-label": "Before and after" },
            make("table", {}, make("thead", {}, make("tr", {}, ["", "Before", "After"].map(title => make(title ? "th" : "td", title ? { scope: "col" } : {}, title)))),
              make("tbody", {}, names.map(name => make("tr", { class: changed.includes(name) && before && after ? "changed" : "" }, make("th", { scope: "row" }, words(name)), make("td", {}, text(before?.[name])), make("td", {}, text(after?.[name]))))))),
          make("p", { class: "note" }, make("code", {}, entry.id), entry.request_id && [" · request ", make("code", {}, entry.request_id)]))));
  }

  subject({ action, subject, before, after }) {
    const of = after || before || {};
    if (action.startsWith("key.")) return of.label || subject;
    if (!action.startsWith("budget.")) return subject;
    return `${of.key ? nameOf(of.key, this.keys) : "the entire account"}, ${(units[of.unit]?.title || of.unit).toLowerCase()} ${periods[of.period] || of.period}`;
  }
}

const words = name => name.replaceAll("_", " ");

function text(value) {
  if (value === null || value === undefined) return "–";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (Array.isArray(value)) return value.join(", ");
  return typeof value === "string" && /^\d{4}-\d\d-\d\dT/.test(value) ? new Date(value).toLocaleString() : typeof value === "object" ? JSON.stringify(value) : String(value);
}
