// The Budgets page. Only admin keys can open it. They set the budgets of other keys.

import { ask, dayWords, field, idOf, keysOf, links, menu, nameOf, periods, units } from "./account.js";
import { ago, button, confirm, icon, make, number, signButton, toast } from "./dom.js";
import { publish, subscribe } from "./news.js";
import { key as own, media, settings } from "./service.js";

export const open = section => new Budgets(section);

const nearly = 0.8; // from this fraction of its limit, a budget is highlighted
const pace = 30; // seconds between updates

class Budgets {
  constructor(section) {
    this.problem = make("p", { class: "notice", role: "alert", hidden: true });
    this.list = make("ul", { class: "rows budgets-list", "aria-label": "Budgets" });
    this.none = make("div", { class: "blankslate", hidden: true }, icon("usage"), make("h2", {}, "No budgets"), make("p", {}, "This account and its keys have no budget."));
    section.append(
      make("div", { class: "page-tools" }, links("usage", "budgets"), button("add", "Set a budget", () => this.ask(), { class: "primary", id: "set-budget" })),
      make("p", { class: "note" }, "A call that could exceed the remaining amount is rejected before it starts. Running calls count as used. Days and months are in UTC."),
      this.problem, this.list, this.none);
    subscribe("budgets", () => section.hidden || this.shown(), () => section.hidden ? 0 : pace);
  }

  async shown() {
    const reading = this.reading = {};
    try {
      this.own ??= await idOf(own());
      const [answer, keys] = await Promise.all([media("GET", "/v1/budgets"), keysOf()]);
      const text = await answer.text();
      if (this.reading !== reading) return; // a later request has already been answered
      this.problem.hidden = true;
      if (this.text === text) return; // nothing has changed
      this.text = text;
      this.budgets = JSON.parse(text).budgets;
      this.keys = keys;
      this.show();
    } catch (refusal) {
      if (this.reading === reading) this.complain(refusal);
    }
  }

  complain(refusal) {
    this.problem.textContent = refusal.message;
    this.problem.hidden = false;
  }

  // show runs at every update, so it must not move the focus.
  show() {
    const held = document.activeElement?.closest(".budgets-list li"), pressed = held && document.activeElement.dataset.act;
    this.list.replaceChildren(...this.budgets.map(budget => this.row(budget)));
    this.none.hidden = this.budgets.length > 0;
    if (held) [...this.list.children].find(row => row.dataset.id === held.dataset.id)?.querySelector(`[data-act=${pressed}]`)?.focus();
  }

  name(budget) { return budget.key ? nameOf(budget.key, this.keys) : "The entire account"; }

  row(budget) {
    const { words } = units[budget.unit] || { words: number }, say = value => words(value, budget.currency);
    const share = budget.limit ? budget.used / budget.limit : 1, state = share >= 1 ? "over" : share >= nearly ? "near" : "";
    const name = this.name(budget), what = `${say(budget.limit)} ${periods[budget.period] || budget.period}`;
    const key = this.keys.get(budget.key), mine = budget.key === this.own;
    const bar = make("div", { class: "meter", role: "meter", "aria-label": `${name}, ${what}`, "aria-valuemin": 0, "aria-valuemax": budget.limit || 1, "aria-valuenow": budget.limit ? Math.min(budget.used, budget.limit) : 1, "aria-valuetext": `${say(budget.used)} of ${say(budget.limit)} used` }, make("div", {}));
    bar.firstChild.style.width = `${Math.min(100, share * 100)}%`;
    return make("li", { "data-id": idOfBudget(budget), "data-state": state },
      make("div", { class: "about" },
        make("p", {}, make("strong", {}, name), make("span", {}, what),
          state && make("span", { class: `badge ${state}` }, budget.limit === 0 ? "Allows nothing" : share >= 1 ? "Used up" : `${Math.floor(share * 100)} % used`),
          !budget.key && make("span", { class: "badge quiet" }, "Set by the operator"), mine && make("span", { class: "badge quiet" }, "This tab's key"), key?.revoked_at && make("span", { class: "badge quiet" }, "Revoked")),
        bar,
        make("p", { class: "note" }, `${say(budget.used)} used, ${budget.unit === "cost" ? say(budget.remaining) : number(budget.remaining)} left · `,
          make("span", { title: new Date(budget.resets_at).toLocaleString() }, `resets ${ago(budget.resets_at)}, on ${dayWords(budget.resets_at)}`),
          budget.warn_url && [" · ", make("span", { title: budget.warn_url }, `warns ${hostOf(budget.warn_url)}`)])),
      // A key may not change its own budget, nor the account's.
      budget.key && !mine && make("div", { class: "row-tools" },
        signButton("pen", `Change the budget of ${name}, ${what}`, () => this.ask(budget), { "data-act": "change" }),
        signButton("bin", `Remove the budget of ${name}, ${what}`, () => this.remove(budget, name, what), { class: "sign bad", "data-act": "remove" })));
  }

  ask(budget) {
    const others = [...this.keys?.values() || []].filter(key => !key.revoked_at && key.id !== this.own && !(key.expires_at && Date.parse(key.expires_at) < Date.now()));
    const key = menu("budget-key", others.map(({ id }) => [id, nameOf(id, this.keys)]), { required: true });
    const period = menu("budget-period", [["month", "A month"], ["day", "A day"]]), unit = menu("budget-unit", Object.entries(units).map(([id, { title }]) => [id, title]));
    const limit = make("input", { id: "budget-limit", type: "number", min: 0, required: true, autocomplete: "off" });
    const warn = make("input", { id: "budget-warn", type: "url", autocomplete: "off", placeholder: "https://example.com/hooks/budgets" });
    const words = make("span", {}), there = make("p", { class: "note" });
    const asked = () => budget || { key: key.value, period: period.value, unit: unit.value };
    const fit = () => {
      const { unit: id, currency = settings.currency } = asked(), old = !budget && this.budgets.find(one => idOfBudget(one) === idOfBudget(asked()));
      limit.step = id === "cost" ? "any" : 1;
      words.textContent = id === "cost" ? currency || "" : units[id].title.toLowerCase();
      there.textContent = old ? `This budget replaces the budget of ${units[id].words(old.limit, old.currency)}.` : id === "cost" && !currency ? "No prices are set, so a cost budget has no effect." : "";
    };
    [key, period, unit].forEach(one => one.addEventListener("change", fit));
    if (budget) [limit.value, warn.value] = [budget.limit, budget.warn_url || ""];
    fit();
    const limitField = field("Limit", limit);
    limitField.querySelector("label").append(" ", words);
    const warnField = field("Webhook for warnings, if any", warn, "The URL receives a message when 80% and when 100% of the budget is used.");
    const send = async dialog => {
      const { key, period, unit } = asked();
      // When a budget replaces another one, an empty field keeps the other one's warning URL.
      const webhook = budget || warn.value ? { warn_url: warn.value || null } : {};
      await media("PUT", "/v1/budgets", { body: { key, period, unit, limit: +limit.value, ...webhook } });
      dialog.close();
      publish("budgets");
      await this.shown();
      toast("The budget was set.");
    };
    if (budget) return ask(`Change the budget of ${this.name(budget)}`, [limitField, warnField], "Save", send);
    if (!others.length) return toast("No other key exists. Create one first, because a key cannot set its own budget.");
    return ask("Set a budget", [field("Key", key), make("div", { class: "pair" }, field("Lasts", period), field("Of", unit)), limitField, warnField, there], "Set it", send);
  }

  async remove({ key, period, unit }, name, what) {
    if (!await confirm(`Remove the budget of ${name}?`, `The limit of ${what} will be removed. If you set it again within the same ${period}, the count continues.`, "Remove")) return;
    try {
      await media("DELETE", `/v1/budgets?${new URLSearchParams({ key, period, unit })}`);
    } catch (refusal) {
      if (refusal.status !== 404) return this.complain(refusal);
    }
    publish("budgets");
    await this.shown();
    document.getElementById("set-budget").focus();
    toast("The budget was removed.");
  }
}

const idOfBudget = ({ key, period, unit }) => [key, period, unit].join("/");

function hostOf(url) {
  try {
    return new URL(url).host;
  } catch {
    return url;
  }
}
