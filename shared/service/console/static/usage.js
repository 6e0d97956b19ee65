// The page Usage: what the account has used, by day and model.

import { draw, icon, make, number } from "./dom.js";
import { hear } from "./news.js";
import { settle } from "./router.js";
import { inference } from "./service.js";

export const usagePage = { id: "usage", title: "Usage", sign: "usage", open: section => new Usage(section) };

const measures = [
  { id: "tokens", title: "Tokens", of: row => row.prompt_tokens + row.completion_tokens },
  { id: "requests", title: "Requests", of: row => row.requests },
  { id: "edits", title: "Edits", of: row => row.jobs || 0 },
  { id: "seconds", title: "Realtime seconds", of: row => row.session_seconds || 0 },
];
const spans = [7, 30, 90];
const colors = 6; // the number of model colors in the style sheet

const dayOf = time => new Date(time).toISOString().slice(0, 10);

class Usage {
  constructor(section) {
    this.measure = measures[0];
    this.days = 30;
    this.choices = [];
    this.totals = make("dl", { class: "totals" });
    this.chart = make("div", { class: "chart" });
    this.table = make("div", { class: "wide-table" });
    this.problem = make("p", { class: "notice", role: "alert", hidden: true });
    const choice = (name, label, options, chosen, pick) => make("div", { class: "choices", role: "radiogroup", "aria-label": label }, options.map(([value, title]) => {
      const input = make("input", { type: "radio", name, value, on: { change: () => {
        pick(value);
        settle("usage", [], { span: this.days, measure: this.measure.id });
      } } });
      input.checked = value === chosen;
      this.choices.push({ name, value, input });
      return make("label", {}, input, make("span", {}, title));
    }));
    section.append(
      make("div", { class: "page-tools" },
        choice("measure", "What to show", measures.map(one => [one.id, one.title]), this.measure.id, id => {
          this.measure = measures.find(one => one.id === id);
          this.asked = true;
          this.show();
        }),
        choice("span", "How many days", spans.map(days => [days, `${days} days`]), this.days, days => {
          this.days = days;
          this.read();
        })),
      this.problem, this.totals, this.chart, this.table);
    hear("jobs", () => section.hidden || this.read());
  }

  shown({ query }) {
    this.measure = measures.find(one => one.id === query.get("measure")) || this.measure;
    this.asked ||= query.has("measure");
    this.days = spans.find(span => span === +query.get("span")) || this.days;
    this.check();
    return this.read();
  }

  // check shows what is chosen.
  check() {
    for (const { name, value, input } of this.choices) input.checked = value === (name === "span" ? this.days : this.measure.id);
  }

  async read() {
    const to = Date.now(), from = to - (this.days - 1) * 86400e3;
    try {
      const { data } = await (await inference("GET", `/v1/usage?from=${dayOf(from)}&to=${dayOf(to)}`)).json();
      this.problem.hidden = true;
      this.rows = data;
      // What nobody has asked for is what there is something of.
      const used = one => data.some(row => one.of(row) > 0);
      if (!this.asked && !used(this.measure)) this.measure = measures.find(used) || this.measure;
      this.check();
      this.dates = Array.from({ length: this.days }, (_, i) => dayOf(from + i * 86400e3));
      this.show();
    } catch (refusal) {
      this.problem.textContent = refusal.message;
      this.problem.hidden = false;
    }
  }

  show() {
    if (!this.rows) return;
    const total = of => number(this.rows.reduce((sum, row) => sum + of(row), 0));
    this.totals.replaceChildren(...[
      ["Edits", total(row => row.jobs || 0)], ["Requests", total(row => row.requests)], ["Tokens in", total(row => row.prompt_tokens)], ["Tokens out", total(row => row.completion_tokens)], ["Realtime seconds", total(row => row.session_seconds || 0)],
    ].map(([title, value]) => make("div", {}, make("dt", {}, title), make("dd", {}, value))));
    if (!this.rows.length) {
      this.chart.replaceChildren(make("div", { class: "blankslate" }, icon("usage"), make("h2", {}, "Nothing used yet"), make("p", {}, `In the last ${this.days} days. Edits, chats and realtime sessions show here.`)));
      this.table.replaceChildren();
      return;
    }
    const of = this.measure.of;
    const models = [...new Set(this.rows.map(row => row.model))].map(model => ({ model, sum: this.rows.filter(row => row.model === model).reduce((sum, row) => sum + of(row), 0) })).filter(one => one.sum > 0).sort((a, b) => b.sum - a.sum).map(one => one.model);
    this.chart.replaceChildren(this.bars(models, of), make("ul", { class: "legend" }, models.map((model, i) => make("li", { "data-color": i % colors }, model))));
    this.showTable();
  }

  // bars draws a stacked bar of the models for each day.
  bars(models, of) {
    const width = Math.max(300, this.chart.clientWidth - 40), height = 220, foot = 22, side = 46;
    const sums = this.dates.map(day => models.map(model => this.rows.filter(row => row.day === day && row.model === model).reduce((sum, row) => sum + of(row), 0)));
    const top = ceiling(Math.max(1, ...sums.map(values => values.reduce((a, b) => a + b, 0))));
    const step = (width - side) / this.dates.length, y = value => (height - foot) * (1 - value / top) + 8;
    const svg = draw("svg", { viewBox: `0 0 ${width} ${height + 8}`, role: "img", "aria-label": `${this.measure.title} by day; the table below has the figures.` });
    for (const part of [0, 0.5, 1]) {
      const text = draw("text", { x: side - 8, y: y(top * part) + 4, class: "axis end" });
      text.textContent = short(top * part);
      svg.append(draw("line", { x1: side, x2: width, y1: y(top * part), y2: y(top * part), class: "rule" }), text);
    }
    const labelEvery = Math.ceil(this.dates.length / (width / 80));
    this.dates.forEach((day, i) => {
      let base = 0;
      const group = draw("g", {}), title = draw("title");
      title.textContent = [day, ...models.map((model, m) => sums[i][m] && `${model}: ${number(sums[i][m])}`).filter(Boolean)].join("\n");
      group.append(title, draw("rect", { x: side + i * step, y: 8, width: step, height: height - foot, class: "day" }));
      models.forEach((_, m) => {
        if (!sums[i][m]) return;
        group.append(draw("rect", { x: side + i * step + step * 0.14, width: step * 0.72, y: y(base + sums[i][m]), height: y(base) - y(base + sums[i][m]), rx: Math.min(2, step / 6), "data-color": m % colors }));
        base += sums[i][m];
      });
      svg.append(group);
      if (i % labelEvery === 0) {
        const text = draw("text", { x: side + (i + 0.5) * step, y: height + 4, class: "axis middle" });
        text.textContent = `${+day.slice(8)} ${new Date(day).toLocaleString("en", { month: "short", timeZone: "UTC" })}`;
        svg.append(text);
      }
    });
    return svg;
  }

  showTable() {
    const head = ["Day", "Model", "Edits", "Requests", "Tokens in", "Tokens out", "Cached", "Reasoning", "Realtime seconds"];
    const rows = [...this.rows].sort((a, b) => b.day.localeCompare(a.day) || a.model.localeCompare(b.model));
    this.table.replaceChildren(make("table", {}, make("caption", { class: "unseen" }, "Usage by day and model"),
      make("thead", {}, make("tr", {}, head.map(title => make("th", { scope: "col" }, title)))),
      make("tbody", {}, rows.map(row => make("tr", {}, make("th", { scope: "row" }, row.day), make("td", {}, row.model),
        [row.jobs || 0, row.requests, row.prompt_tokens, row.completion_tokens, row.cached_tokens, row.reasoning_tokens, row.session_seconds || 0].map(value => make("td", {}, number(value))))))));
    this.table.setAttribute("tabindex", "0");
    this.table.setAttribute("role", "region");
    this.table.setAttribute("aria-label", "Usage by day and model");
  }
}

// ceiling returns the next larger number of one digit and zeros, or half of such a
// number.
function ceiling(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 4, 5, 10].map(one => one * power).find(one => one >= value);
}

const short = value => value >= 1e6 ? `${+(value / 1e6).toFixed(1)}M` : value >= 1e3 ? `${+(value / 1e3).toFixed(1)}k` : String(+value.toFixed(1));
