// The page Gallery: all edits of the account, to look for, look at, compare and take up
// again.

import { ago, button, icon, make, number, say } from "./dom.js";
import { editResult, useSettings } from "./edit.js";
import { list, modelOf, record, stateOf, stateWords } from "./jobs.js";
import { titleOf } from "./models.js";
import { hear } from "./news.js";
import { jobPicture } from "./pictures.js";
import { actions, notes, showFailure, showProgress, showResult, terminal } from "./result.js";
import { address, settle, visit } from "./router.js";
import { Run } from "./run.js";
import { settings } from "./service.js";

const pageSize = 24, mostCompared = 4, typingPause = 250;

export const jobsPage = { id: "jobs", title: "Gallery", sign: "gallery", open: section => new Gallery(section) };

class Gallery {
  constructor(section) {
    this.section = section;
    this.chosen = new Set(); // ids to compare
    this.search = make("input", { type: "search", id: "job-search", placeholder: "Search prompts and files", "aria-label": "Search", maxlength: 200, on: { input: () => {
      clearTimeout(this.typing);
      this.typing = setTimeout(() => this.narrow(), typingPause);
    } } });
    this.state = make("select", { "aria-label": "State", on: { change: () => this.narrow() } },
      make("option", { value: "" }, "Any state"), ["completed", "processing", "pending", "failed"].map(state => make("option", { value: state }, stateWords[state])));
    this.model = make("select", { "aria-label": "Model", on: { change: () => this.narrow() } },
      make("option", { value: "" }, "Any model"), settings.models.map(model => make("option", { value: model.id }, titleOf(model))));
    this.compared = make("a", { class: "button primary", hidden: true }, icon("compare"), this.comparedWords = make("span"));
    this.none = make("div", { class: "blankslate", hidden: true });
    this.problem = make("p", { class: "notice", role: "alert", hidden: true });
    this.grid = make("ul", { class: "grid jobs-grid", "aria-label": "Edits" });
    this.more = button("add", "More edits", () => this.next(), { hidden: true });
    this.list = make("div", {},
      make("div", { class: "page-tools" }, make("div", { class: "filters" }, this.search, this.state, this.model), this.compared),
      this.problem, this.grid, this.none, make("div", { class: "row end" }, this.more));
    this.detail = make("div", { class: "job-detail", hidden: true });
    section.append(this.list, this.detail);
    new IntersectionObserver(([seen]) => seen.isIntersecting && !this.more.hidden && this.next(), { rootMargin: "600px" }).observe(this.more);
    hear("jobs", () => !section.hidden && !this.list.hidden && this.read());
  }

  async shown({ parts: [id], query }) {
    this.list.hidden = Boolean(id);
    this.detail.hidden = !id;
    this.section.querySelector("h1").classList.toggle("unseen", Boolean(id));
    if (id) return this.open(id);
    this.run = undefined;
    this.search.value = query.get("q") || "";
    for (const name of ["state", "model"]) this[name].value = query.get(name) || "";
    await this.read();
  }

  left() { this.run = undefined; }

  // narrow reads the list anew by what is asked for now.
  narrow() {
    settle("jobs", [], { q: this.search.value.trim(), state: this.state.value, model: this.model.value });
    return this.read();
  }

  // read starts the list, and keeps as much of it in view as there was.
  async read() {
    const reading = this.reading = {};
    const asked = { q: this.search.value.trim(), status: this.state.value, model: this.model.value };
    const same = JSON.stringify(asked) === JSON.stringify(this.asked);
    const jobs = [];
    try {
      const wanted = same ? Math.max(pageSize, this.grid.children.length) : pageSize;
      let cursor;
      do {
        // A page may be empty, and others follow.
        const page = await list({ ...asked, limit: pageSize, cursor });
        if (this.reading !== reading) return;
        jobs.push(...page?.jobs || []);
        cursor = page?.next_cursor;
      } while (cursor && jobs.length < wanted);
      this.asked = asked;
      this.cursor = cursor;
    } catch (refusal) {
      if (this.reading === reading) this.complain(refusal);
      return;
    }
    this.problem.hidden = true;
    this.show(jobs);
  }

  show(jobs) {
    const focused = this.grid.contains(document.activeElement) ? document.activeElement.closest("li")?.dataset.id : undefined;
    const cards = new Map([...this.grid.children].map(card => [card.dataset.id, card]));
    this.grid.replaceChildren(...jobs.map(job => {
      const old = cards.get(job.job_id);
      return old?.dataset.shown === stateKey(job) ? old : this.card(job);
    }));
    if (focused) this.grid.querySelector(`[data-id="${CSS.escape(focused)}"] a`)?.focus();
    this.more.hidden = !this.cursor;
    this.none.hidden = jobs.length > 0;
    const narrowed = Object.values(this.asked).some(Boolean);
    this.none.replaceChildren(icon("gallery"), make("h2", {}, narrowed ? "Nothing like that" : "No edits yet"),
      make("p", {}, narrowed ? "No edit of the last week matches." : "What you make is listed here for a week, its results for a day."),
      narrowed ? button("", "Show all edits", () => visit("jobs")) : make("a", { class: "button primary", href: address("edit") }, "Make one"));
    this.offer();
    if (narrowed) say(`${number(jobs.length)}${this.cursor ? " or more" : ""} edits match.`);
  }

  // next adds the next page.
  async next() {
    const { cursor, reading } = this;
    if (!cursor || this.adding) return;
    this.adding = true;
    try {
      const page = await list({ ...this.asked, limit: pageSize, cursor });
      if (this.reading !== reading) return;
      this.grid.append(...page.jobs.map(job => this.card(job)));
      this.cursor = page.next_cursor;
      this.more.hidden = !this.cursor;
    } catch (refusal) {
      this.complain(refusal);
    } finally {
      this.adding = false;
    }
    // A page that adds little does not move the button out of sight.
    if (this.cursor && this.more.getBoundingClientRect().top < innerHeight + 600) this.next();
  }

  complain(refusal) {
    this.problem.textContent = refusal.message;
    this.problem.hidden = false;
  }

  card(job) {
    const model = modelOf(job), state = stateOf(job);
    const picture = make("div", { class: "thumb" }, icon(model?.kind === "image" ? "image" : "film"));
    const words = job.prompt || (job.inputs?.data?.name ?? job.model);
    const choose = make("input", { type: "checkbox", "aria-label": `Compare ${words}`, on: { change: () => {
      if (choose.checked) this.chosen.add(job.job_id);
      else this.chosen.delete(job.job_id);
      this.offer();
    } } });
    choose.checked = this.chosen.has(job.job_id);
    const card = make("li", { class: "file job", "data-id": job.job_id, "data-status": state, "data-shown": stateKey(job) },
      make("a", { href: address("jobs", [job.job_id]), class: "job-link" }, picture,
        make("div", { class: "about" }, make("strong", { class: "file-name", title: words }, words),
          make("span", {}, [model ? titleOf(model) : job.model, job.inputs?.data?.name].filter(Boolean).join(" · ")),
          make("span", { class: "facts" }, make("span", { class: "dot" }), state === "processing" ? `${Math.floor(job.progress * 100)} %` : stateWords[state], ` · ${ago(job.created_at)}`))),
      state === "completed" && make("label", { class: "choose" }, choose, make("span", {}, "Compare")));
    this.picture(job, picture);
    return card;
  }

  // picture shows a job's picture once it is near the screen.
  picture(job, place) {
    const watcher = new IntersectionObserver(async ([seen]) => {
      if (!seen.isIntersecting) return;
      watcher.disconnect();
      const shown = await jobPicture(job);
      if (!shown) return; // its icon stays
      place.replaceChildren(shown);
      const before = job.inputs?.data && await jobPicture(job, "input");
      if (before) {
        before.classList.add("was");
        place.append(before);
      }
    }, { rootMargin: "300px" });
    watcher.observe(place);
  }

  // offer leads to the comparison of those that are chosen.
  offer() {
    const count = this.chosen.size;
    this.compared.hidden = count === 0;
    this.comparedWords.textContent = count === 1 ? "Choose another to compare" : `Compare ${count}`;
    if (count > 1) this.compared.href = address("compare", [[...this.chosen].join(",")]);
    else this.compared.removeAttribute("href");
    for (const box of this.grid.querySelectorAll(".choose input")) box.disabled = !box.checked && count >= mostCompared;
  }

  // open shows one edit.
  async open(id) {
    const back = make("a", { class: "button", href: address("jobs", [], this.asked && { q: this.asked.q, state: this.asked.status, model: this.asked.model }) }, icon("back"), make("span", {}, "All edits"));
    const stage = make("div", { class: "stage", "data-state": "working" }), does = make("div", { class: "actions" }), told = make("div", {});
    const title = make("h2", { class: "prompt-title" });
    this.detail.replaceChildren(make("div", { class: "row" }, back), title, stage, does, told);
    let run;
    try {
      run = this.run?.id === id ? this.run : Run.ofJob(await record(id));
    } catch (refusal) {
      return this.detail.replaceChildren(make("div", { class: "row" }, back), make("p", { class: "notice", role: "alert" }, refusal.status === 404 ? "This edit is unknown: it is older than a week, or was deleted." : refusal.message));
    }
    this.run = run;
    let progress;
    const draw = async () => {
      if (this.run !== run) return;
      title.textContent = run.prompt || (run.model ? titleOf(run.model) : run.job.model);
      if (run.working) {
        progress ??= showProgress(stage, run, run.source?.url);
        return progress();
      }
      progress = undefined;
      if (run.phase === "fetching") return run.watch();
      if (run.phase === "failed" && !run.problem) return run.settle();
      if (run.phase !== "done") return showFailure(stage, run, run.model && button("settings", "Use these settings", () => useSettings(run)));
      await showResult(stage, run);
      does.replaceChildren(...actions(run, { edit: editResult, settings: run.model && useSettings, gone: () => visit("jobs") }));
      told.replaceChildren(...[notes(run), this.asks(run), terminal(run)].filter(Boolean));
    };
    if (!run.followed) {
      run.followed = true;
      run.listeners.add(draw);
    }
    await run.original();
    await draw();
    if (run.id && run.working && !run.watched) run.watch();
  }

  // asks returns what the job was asked to do.
  asks(run) {
    const rows = run.fields.filter(([name]) => name !== "prompt").map(([name, value]) => [make("dt", {}, name.replaceAll("_", " ")), make("dd", {}, typeof value === "object" ? value.name : value)]);
    return rows.length ? make("details", { class: "asked" }, make("summary", {}, "What was asked"), make("dl", { class: "facts-list" }, rows)) : undefined;
  }
}

// stateKey tells whether a card shows a job as it is.
const stateKey = job => [stateOf(job), job.progress].join();
