// The page that shows two to four results side by side, and plays them in sync.

import { icon, make } from "./dom.js";
import { fitTo, together, view } from "./compare.js";
import { record } from "./jobs.js";
import { titleOf } from "./models.js";
import { address } from "./router.js";
import { Run } from "./run.js";

const most = 4;

export const comparePage = { id: "compare", title: "Side by side", within: "jobs", look: "side-page", sign: "compare", open: section => new Side(section) };

class Side {
  constructor(section) {
    this.grid = make("div", { class: "side-grid" });
    this.bar = make("div", { class: "side-bar" });
    this.runs = new Map(); // by id, so that nothing is fetched again when the user returns
    section.append(make("div", { class: "page-tools" }, make("p", { class: "note" }, "Videos play in step. The original comes first if this browser has it."),
      make("a", { class: "button", href: address("jobs") }, icon("gallery"), make("span", {}, "All edits"))), this.grid, this.bar);
  }

  async shown({ parts: [ids = ""] }) {
    const wanted = [...new Set(ids.split(",").filter(Boolean))].slice(0, most);
    if (wanted.join() === this.wanted) return;
    this.wanted = wanted.join();
    this.bar.replaceChildren();
    if (wanted.length < 2) return this.grid.replaceChildren(make("p", { class: "notice" }, "Select two to four edits on the page with all edits, and compare them."));
    const places = wanted.map(id => make("figure", { class: "side-one", "data-id": id }, make("p", { class: "note" }, "Fetching the result …")));
    this.grid.replaceChildren(...places);
    this.arrange();
    const runs = await Promise.all(wanted.map((id, i) => this.fetch(id, places[i])));
    if (this.wanted !== wanted.join()) return;
    const original = await runs.find(Boolean)?.original();
    if (original) {
      const first = runs.find(Boolean), place = make("figure", { class: "side-one" });
      this.fill(place, first.sourceKind, original, make("figcaption", {}, make("strong", {}, "Original"), ` ${first.source.name}`));
      this.grid.prepend(place);
    }
    this.arrange();
    const videos = [...this.grid.querySelectorAll("video")];
    if (videos.length) this.bar.replaceChildren(together(videos));
  }

  // arrange sets the number of columns and rows so that all results are visible.
  arrange() {
    const count = this.grid.children.length, columns = count === 4 ? 2 : Math.min(3, count);
    this.grid.style.setProperty("--columns", columns);
    this.grid.style.setProperty("--rows", Math.ceil(count / columns));
  }

  async fetch(id, place) {
    try {
      const run = this.runs.get(id) || Run.ofJob(await record(id));
      this.runs.set(id, run);
      if (run.job.status !== "completed") throw new Error("This edit has no result.");
      if (!run.url) await run.fetch();
      if (!run.url) throw new Error(run.problem?.why || "The result was deleted.");
      this.fill(place, run.kind, run.url, make("figcaption", {},
        make("a", { href: address("jobs", [id]) }, make("strong", {}, run.model ? titleOf(run.model) : run.job.model)), ` seed ${run.job.seed} `, make("span", { class: "note" }, run.prompt)));
      return run;
    } catch (failure) {
      place.replaceChildren(make("p", { class: "notice", role: "alert" }, failure.message));
      return undefined;
    }
  }

  fill(place, kind, url, caption) {
    const shown = view(kind, url, caption.textContent);
    fitTo(place, shown);
    place.replaceChildren(shown, caption);
  }
}
