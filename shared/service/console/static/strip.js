// The row of runs: the runs of this tab, followed by the account's latest jobs.

import { button, icon, make, shortAgo, signButton } from "./dom.js";
import { list } from "./jobs.js";
import { subscribe } from "./news.js";
import { canNotify, choose, notifies } from "./notify.js";
import { address } from "./router.js";
import { Run } from "./run.js";
import { pictureOf } from "./pictures.js";

const latest = 12; // how many of the account's jobs are shown
const most = 40;

export class Strip {
  // look(run) is called when a run is chosen. shown() returns the run that is displayed, and back() leaves it.
  constructor(look, shown, back) {
    this.look = look;
    this.shown = shown;
    this.runs = []; // newest first
    this.tiles = new Map(); // tiles by run
    this.items = make("ol", {});
    this.none = make("p", { class: "note" }, "Your edits appear here.");
    this.together = make("a", { class: "button", hidden: true }, icon("compare"), make("span", {}, "Side by side"));
    this.anew = button("add", "New edit", back, { id: "new-edit", hidden: true });
    this.element = make("section", { class: "recent", "aria-labelledby": "recent-title" },
      make("div", { class: "recent-head" }, make("h2", { id: "recent-title" }, "Recent edits"), this.anew, this.together, canNotify && this.bell(), make("a", { href: address("jobs") }, "All edits")),
      this.items, this.none);
    subscribe("jobs", () => this.away() || this.read(), () => this.away() ? 0 : this.runs.some(run => run.working && !run.watched) ? 4 : 30);
  }

  away() { return Boolean(this.element.closest("[hidden]")); }

  bell() {
    const show = () => {
      press.setAttribute("aria-pressed", String(notifies()));
      press.title = notifies() ? "You are notified when an edit ends" : "Notify me when an edit ends";
    };
    const press = signButton("bell", "Notify me when an edit ends", async () => {
      await choose(!notifies());
      show();
    }, { id: "notify" });
    show();
    return press;
  }

  find(id) { return this.runs.find(run => run.id === id); }

  // own returns the runs that this tab has started and that have jobs.
  own() { return this.runs.filter(run => run.ours && run.id); }

  add(run, ours = !run.job) {
    run.ours = ours;
    this.runs.unshift(run);
    this.sort();
    this.show();
  }

  remove(run) {
    this.runs = this.runs.filter(one => one !== run);
    this.show();
  }

  sort() {
    const time = run => run.job ? +new Date(run.job.created_at) : run.began;
    this.runs.sort((a, b) => time(b) - time(a));
    this.runs.length = Math.min(this.runs.length, most);
  }

  // read reads the account's latest jobs. If that fails, the runs of this tab stay.
  async read() {
    let page;
    const before = [...this.runs];
    try {
      page = await list({ limit: latest });
    } catch {
      // This row is optional, so ignore failures. The rest of the page reports its own.
    }
    for (const job of page?.jobs || []) {
      const run = this.find(job.job_id);
      if (!run) this.runs.push(Run.ofJob(job));
      else if (!run.working && !run.job) run.job = job;
      else if (!run.ours && !run.watched && !run.url && run !== this.shown()) run.learn(job);
    }
    if (page) this.runs = this.runs.filter(run => !before.includes(run) || !this.gone(run, page));
    this.sort();
    this.show();
  }

  // gone reports whether a run must have been deleted by another program: it is missing from the latest jobs,
  // although it is recent enough to be among them.
  gone(run, { jobs, next_cursor: more }) {
    if (!run.job || run.working || run === this.shown() || jobs.some(job => job.job_id === run.id)) return false;
    return !more || new Date(run.job.created_at) > new Date(jobs.at(-1)?.created_at ?? NaN);
  }

  update(run) {
    if (!this.runs.includes(run)) return;
    const tile = this.tiles.get(run);
    if (tile) tile.fill();
    else this.show();
    this.offerTogether();
  }

  show() {
    this.none.hidden = this.runs.length > 0;
    const shown = this.shown();
    for (const run of [...this.tiles.keys()]) if (!this.runs.includes(run)) this.tiles.delete(run);
    for (const run of this.runs) if (!this.tiles.has(run)) this.tiles.set(run, this.tile(run));
    const items = this.runs.map(run => this.tiles.get(run).item);
    // Touch the list only if it has changed, so that the focus does not move.
    if (items.length !== this.items.children.length || items.some((item, i) => this.items.children[i] !== item)) {
      const focused = this.items.contains(document.activeElement) ? document.activeElement : undefined;
      this.items.replaceChildren(...items);
      focused?.focus();
    }
    this.tiles.forEach((tile, run) => tile.fill(run === shown));
    this.offerTogether();
  }

  tile(run) {
    const picture = make("span", { class: "tile-picture" }, icon(run.mode?.sign || "film"));
    const name = make("span", { class: "name" }), state = make("span", { class: "state" }), when = make("span", { class: "when" }), bar = make("span", { class: "tile-bar" });
    const press = make("button", { type: "button", on: { click: () => this.look(run) } }, picture, bar, name, make("span", { class: "facts" }, make("span", { class: "dot" }), state, when));
    let pictured;
    const fill = shown => {
      if (shown !== undefined) press.setAttribute("aria-pressed", String(shown));
      const words = run.prompt || (run.model?.id ?? run.job?.model ?? "");
      press.dataset.id = run.id || "";
      press.dataset.status = run.unchanged ? "unchanged" : run.phase;
      if (name.textContent !== words) {
        name.textContent = words;
        press.title = words;
      }
      when.textContent = shortAgo(run.job?.created_at || run.began);
      state.textContent = run.phase === "fetching" && !run.working ? run.outcome : run.working && run.share !== undefined && run.phase !== "waiting" ? `${Math.floor(run.share * 100)} %` : run.words();
      bar.style.setProperty("--share", run.working ? run.share || 0 : 0);
      const key = run.url ? "result" : run.source?.url ? "source" : run.job?.status;
      if (key === pictured) return;
      pictured = key;
      pictureOf(run).then(found => found && picture.replaceChildren(found));
    };
    return { item: make("li", {}, press), fill };
  }

  // offerTogether shows a link that compares the finished runs of this tab.
  offerTogether() {
    const done = this.runs.filter(run => run.ours && run.phase === "done" && run.id).slice(0, 4);
    this.together.hidden = done.length < 2;
    this.together.href = address("compare", [done.map(run => run.id).join(",")]);
  }
}
