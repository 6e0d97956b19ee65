// The Usage page: the account's usage and cost by day and model. Admins can also see it by key.

import { cash, dayOf, dayWords, keysOf, links, nameOf, short } from "./account.js";
import { drawChart } from "./chart.js";
import { button, icon, make, number, save } from "./dom.js";
import { subscribe } from "./news.js";
import { settle } from "./router.js";
import { admin, inference } from "./service.js";

export const open = section => new Usage(section);

const tokens = row => row.prompt_tokens + row.completion_tokens;

const measures = [
  { id: "cost", title: "Cost", of: row => row.cost || 0 },
  { id: "tokens", title: "Tokens", of: tokens },
  { id: "requests", title: "Requests", of: row => row.requests },
  { id: "edits", title: "Edits", of: row => row.jobs || 0 },
  { id: "seconds", title: "Realtime seconds", of: row => row.session_seconds || 0 },
];

// The first column is shown only if there are prices.
const columns = [
  measures[0], measures[3],
  { title: "Completed", of: row => row.jobs_completed || 0 },
  measures[2],
  { title: "Tokens in", of: row => row.prompt_tokens },
  { title: "Tokens out", of: row => row.completion_tokens },
  { title: "Cached", of: row => row.cached_tokens },
  { title: "Reasoning", of: row => row.reasoning_tokens },
  measures[4],
];

const groups = [["model", "By model"], ["key", "By key"]];
const spans = [["7", "7 days"], ["30", "30 days"], ["90", "90 days"], ["month", "This month"], ["dates", "Dates"]];
const colors = 8; // the style sheet has this many colors; the last is for all other series
const narrowest = 5; // in pixels per day; on narrower screens, each bar is a week
const day = 86400e3;

class Usage {
  constructor(section) {
    this.measure = measures[1];
    this.by = "model";
    this.span = "30";
    this.inputs = [];
    this.totals = make("dl", { class: "totals" });
    this.chart = make("div", { class: "chart" });
    this.table = make("div", { class: "tables" });
    this.problem = make("p", { class: "notice", role: "alert", hidden: true });
    this.from = this.date("From");
    this.to = this.date("To");
    this.dates = make("div", { class: "row", hidden: true }, this.from.parentElement, this.to.parentElement);
    section.append(
      make("div", { class: "page-tools" },
        admin && links("usage", "usage"),
        this.choice("span", "How many days", spans, value => {
          this.span = value;
          this.read();
        }),
        this.dates),
      this.problem, this.totals,
      make("div", { class: "page-tools" },
        this.choice("measure", "What to show", measures.map(one => [one.id, one.title]), value => {
          this.measure = measures.find(one => one.id === value);
          this.asked = true;
          this.show();
        }),
        admin && this.choice("by", "How to group it", groups, value => {
          this.by = value;
          this.read();
        }),
        button("download", "CSV", () => this.download(), { "aria-label": "Download as CSV", id: "usage-csv" })),
      this.chart, this.table);
    subscribe("jobs", () => section.hidden || this.read());
    new ResizeObserver(() => this.chart.clientWidth !== this.drawn && !section.hidden && this.draw()).observe(this.chart);
  }

  choice(name, label, options, pick) {
    return make("div", { class: "choices", role: "radiogroup", "aria-label": label }, options.map(([value, title]) => {
      const input = make("input", { type: "radio", name, value, on: { change: () => {
        pick(value);
        this.settle();
      } } });
      this.inputs.push(input);
      return make("label", {}, input, make("span", {}, title));
    }));
  }

  date(words) {
    const input = make("input", { type: "date", max: dayOf(Date.now()), on: { change: () => {
      if (!this.from.value || !this.to.value) return;
      this.read();
      this.settle();
    } } });
    make("label", { class: "kept-for" }, words, input);
    return input;
  }

  settle() {
    const dates = this.span === "dates" ? { from: this.from.value, to: this.to.value } : { span: this.span };
    settle("usage", [], { ...dates, measure: this.measure.id, by: this.by === "key" && "key" });
  }

  shown({ query }) {
    this.measure = measures.find(one => one.id === query.get("measure")) || this.measure;
    this.asked ||= query.has("measure");
    this.state = undefined; // the address may contain another measure, so draw everything again
    this.by = admin && query.get("by") === "key" ? "key" : query.has("by") ? "model" : this.by;
    if (query.has("from")) {
      this.span = "dates";
      this.from.value = query.get("from");
      this.to.value = query.get("to");
    } else this.span = spans.some(([value]) => value === query.get("span")) ? query.get("span") : this.span;
    return this.read();
  }

  check() {
    const chosen = { span: this.span, measure: this.measure.id, by: this.by };
    for (const input of this.inputs) input.checked = input.value === chosen[input.name];
    this.dates.hidden = this.span !== "dates";
  }

  range() {
    const today = dayOf(Date.now());
    if (this.span === "dates" && this.from.value && this.to.value) return [this.from.value, this.to.value];
    const first = this.span === "month" ? `${today.slice(0, 8)}01` : dayOf(Date.now() - ((+this.span || 30) - 1) * day);
    [this.from.value, this.to.value] = [first, today]; // the initial dates of a custom range
    return [first, today];
  }

  async read() {
    const reading = this.reading = {};
    const [from, to] = this.range(), by = this.by;
    this.check();
    try {
      const [answer, keys] = await Promise.all([inference("GET", `/v1/usage?from=${from}&to=${to}&group_by=day,${by}`), by === "key" && keysOf().catch(() => undefined)]);
      const text = await answer.text(), state = [from, to, by, text].join();
      if (this.reading !== reading) return;
      this.problem.hidden = true;
      if (this.state === state) return; // nothing has changed
      this.state = state;
      const { data } = JSON.parse(text);
      this.keys = keys;
      this.rows = data.map(row => ({ ...row, cost: +row.cost || 0, of: row[by] || "" }));
      this.currency = data.find(row => row.currency)?.currency;
      this.days = [];
      for (let at = Date.parse(from); at <= Date.parse(to); at += day) this.days.push(dayOf(at));
      // If the user has not chosen a measure, show the first that has a value.
      if (!this.asked) this.measure = measures.find(one => data.some(row => one.of(row) > 0)) || this.measure;
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
    if (!this.rows) return;
    this.check();
    const priced = Boolean(this.currency);
    this.inputs.find(input => input.value === "cost").parentElement.hidden = !priced && this.measure !== measures[0];
    this.totals.replaceChildren(...columns.filter(one => !["Completed", "Cached", "Reasoning", !priced && "Cost"].includes(one.title)).map(one => make("div", {}, make("dt", {}, one.title), this.tile(one, total(this.rows, one.of)))));
    this.draw();
    this.showTables(columns.filter(one => priced || one !== measures[0]));
  }

  tile(measure, value) {
    const words = this.words(measure, value);
    return make("dd", { title: words }, words.length > 11 ? short(value, measure.id === "cost" ? this.money() : {}) : words);
  }

  money() { return this.currency ? { style: "currency", currency: this.currency } : {}; }

  words(measure, value) { return measure.id === "cost" ? cash(value, this.currency) : number(value); }

  name(of) { return this.by === "key" ? of ? nameOf(of, this.keys) : "Recorded without a key" : of; }

  // draw draws the chart. The largest series have their own colors.
  draw() {
    this.drawn = this.chart.clientWidth;
    if (!this.rows || !this.drawn) return;
    const { of } = this.measure, all = sumsOf(this.rows, of).filter(one => one.sum > 0);
    if (!all.length) {
      const [title, text] = this.rows.length ? [`No ${this.measure.title.toLowerCase()} on these days`, "Choose another measure to see the usage on these days."] : ["No usage on these days", "Edits, chats and realtime sessions appear here."];
      this.chart.replaceChildren(make("div", { class: "blankslate" }, icon("usage"), make("h2", {}, title), make("p", {}, text)));
      return;
    }
    const own = all.slice(0, all.length > colors ? colors - 1 : colors), rest = all.slice(own.length);
    const place = new Map(all.map((one, i) => [one.of, Math.min(i, own.length)]));
    const length = this.drawn / this.days.length < narrowest ? 7 : 1;
    const bars = [];
    for (let i = 0; i < this.days.length; i += length) bars.push(barOf(this.days[i], length, own.length + (rest.length > 0)));
    const at = new Map(this.days.map((day, i) => [day, Math.floor(i / length)]));
    for (const row of this.rows) if (place.has(row.of) && at.has(row.day)) bars[at.get(row.day)].values[place.get(row.of)] += of(row);
    drawChart(this.chart, {
      title: `${this.measure.title} by ${length > 1 ? "week" : "day"}`, bars,
      series: [...own.map((one, i) => ({ name: this.name(one.of), color: i })), ...rest.length ? [{ name: `${rest.length} others`, color: colors - 1, rest: true }] : []],
      words: value => this.words(this.measure, value),
      axis: value => this.measure.id === "cost" ? value && value < 0.01 ? cash(value, this.currency) : short(value, this.money()) : short(value),
    });
  }

  // showTables shows the sums, and below them the figures of each day.
  showTables(shown) {
    if (!this.rows.length) return this.table.replaceChildren();
    const what = this.by === "key" ? "Key" : "Model", cells = (measures, rows) => measures.map(one => make("td", {}, this.words(one, total(rows, one.of))));
    const sums = sumsOf(this.rows, this.measure.of).map(({ of }) => make("tr", {}, make("th", { scope: "row" }, this.name(of)), cells(shown, this.rows.filter(row => row.of === of))));
    const open = this.table.querySelector("details")?.open;
    const days = make("details", { class: "past", on: { toggle: () => {
      if (!days.open || days.children.length > 1) return;
      const rows = [...this.rows].sort((a, b) => b.day.localeCompare(a.day) || this.name(a.of).localeCompare(this.name(b.of)));
      days.append(table(`Usage by day and ${this.by}`, ["Day", what, ...shown.map(one => one.title)], rows.map(row => make("tr", {}, make("th", { scope: "row" }, row.day), make("td", {}, this.name(row.of)), cells(shown, [row])))));
    } } }, make("summary", {}, `By day (${number(this.rows.length)} ${this.rows.length === 1 ? "row" : "rows"})`));
    this.table.replaceChildren(table(`Usage by ${this.by}`, [what, ...shown.map(one => one.title)], sums), days);
    days.open = Boolean(open);
    return undefined;
  }

  async download() {
    const [from, to] = this.range();
    try {
      const answer = await inference("GET", `/v1/usage?from=${from}&to=${to}&group_by=day,${this.by}&format=csv`);
      save(await answer.blob(), `usage-by-${this.by}-${from}-${to}.csv`);
    } catch (refusal) {
      this.complain(refusal);
    }
  }
}

const total = (rows, of) => rows.reduce((sum, row) => sum + of(row), 0);

// sumsOf returns the sums of the rows, largest first.
function sumsOf(rows, measure) {
  const sums = new Map();
  for (const row of rows) sums.set(row.of, (sums.get(row.of) || 0) + measure(row));
  return [...sums].map(([of, sum]) => ({ of, sum })).sort((a, b) => b.sum - a.sum || a.of.localeCompare(b.of));
}

const barOf = (day, length, series) => ({
  label: dayWords(day), values: Array(series).fill(0),
  title: (length > 1 ? "7 days from " : "") + dayWords(day, { weekday: "short", day: "numeric", month: "short", year: "numeric" }),
});

const table = (caption, head, rows) => make("div", { class: "wide-table", tabindex: 0, role: "region", "aria-label": caption }, make("table", {}, make("caption", { class: "unseen" }, caption),
  make("thead", {}, make("tr", {}, head.map(title => make("th", { scope: "col" }, title)))), make("tbody", {}, rows)));
