// The Gallery page: all edits of the account.

import { arrange, button, icon, make, number, say, since } from "./dom.js";
import { editResult, useSettings } from "./edit.js";
import { ended, list, modelOf, purge, record, stateOf, stateWords } from "./jobs.js";
import { titleOf } from "./models.js";
import { publish, subscribe } from "./news.js";
import { jobPicture } from "./pictures.js";
import { actions, notes, showFailure, showProgress, showResult, terminal } from "./result.js";
import { address, settle, visit } from "./router.js";
import { Run } from "./run.js";
import { Selection } from "./selection.js";
import { settings } from "./service.js";

const pageSize = 24, mostOfPage = 1000, mostCompared = 4, typingPause = 250;
const margin = 600; // more edits are loaded when the end of the list is this many pixels below the screen
// A page of search results may be empty even though more pages follow. A search first reads up to firstPages pages.
// Each time the user continues the search, twice as many are read, up to mostPages.
const firstPages = 4, mostPages = 16;

export const jobsPage = { id: "jobs", title: "Gallery", sign: "gallery", open: section => new Gallery(section) };

class Gallery {
  constructor(section) {
    this.section = section;
    this.jobs = []; // the jobs that are shown
    this.search = make("input", { type: "search", id: "job-search", placeholder: "Search prompts and files", "aria-label": "Search", maxlength: 200, on: { input: () => {
      clearTimeout(this.typing);
      this.typing = setTimeout(() => this.narrow(), typingPause);
    } } });
    this.state = make("select", { "aria-label": "State", on: { change: () => this.narrow() } },
      make("option", { value: "" }, "Any state"), ["completed", "processing", "pending", "failed"].map(state => make("option", { value: state }, stateWords[state])));
    this.model = make("select", { "aria-label": "Model", on: { change: () => this.narrow() } },
      make("option", { value: "" }, "Any model"), settings.models.map(model => make("option", { value: model.id }, titleOf(model))));
    this.compared = make("a", { class: "button" }, icon("compare"), this.comparedWords = make("span"));
    this.none = make("div", { class: "blankslate", hidden: true });
    this.problem = make("p", { class: "notice", role: "alert", hidden: true });
    this.grid = make("ul", { class: "grid jobs-grid", "aria-label": "Edits" });
    this.more = button("add", "More edits", () => this.next(this.pages), { hidden: true });
    this.searched = make("p", { class: "note", role: "status" });
    this.selection = new Selection(this.grid, { one: "edit", many: "edits", warning: "Results and records are deleted for everyone in the account, and links to them stop working. This cannot be undone." }, {
      drop: purge, gone: ids => this.gone(ids), changed: () => this.offer(),
    }, this.compared);
    this.list = make("div", {},
      make("div", { class: "page-tools" }, make("div", { class: "filters" }, this.search, this.state, this.model)),
      this.selection.element, this.problem, this.grid, this.none, make("div", { class: "row end" }, this.searched, this.more));
    this.detail = make("div", { class: "job-detail", hidden: true });
    section.append(this.list, this.detail);
    new IntersectionObserver(([seen]) => seen.isIntersecting && this.reach(), { rootMargin: `${margin}px` }).observe(this.more);
    subscribe("jobs", () => this.refresh(), () => this.pace());
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

  left() {
    this.run = undefined;
    this.walking?.abort();
  }

  // refresh shows the changes since the last visit.
  async refresh() {
    const { run } = this;
    if (this.section.hidden) return;
    if (!this.detail.hidden) {
      if (run && !run.working) await record(run.id).catch(({ status }) => status === 404 && this.run === run && (this.run = undefined, this.open(run.id)));
    } else if (this.walking) this.changed = true;
    else await this.read();
  }

  // pace returns how often to read the list again, in seconds, in order to notice other programs' jobs. 0 means
  // never.
  pace() {
    if (this.section.hidden || this.list.hidden || !this.asked) return 0;
    const narrowed = Object.values(this.asked).some(Boolean);
    if (this.jobs.some(job => !ended(job))) return narrowed ? 10 : 4;
    return narrowed ? 0 : 30;
  }

  narrow() {
    settle("jobs", [], { q: this.search.value.trim(), state: this.state.value, model: this.model.value });
    return this.read();
  }

  // walk reads pages of the search until it has found enough jobs or has read enough pages. It resolves to {jobs,
  // cursor}, or to undefined if another walk has started.
  async walk(asked, cursor, wanted, pages) {
    const controller = new AbortController(), { signal } = controller, jobs = [];
    this.walking?.abort();
    this.walking = controller;
    this.grid.setAttribute("aria-busy", "true");
    try {
      do {
        const page = await list({ ...asked, limit: Math.min(wanted, mostOfPage), cursor }, signal);
        jobs.push(...page?.jobs || []);
        cursor = page?.next_cursor;
      } while (cursor && jobs.length < wanted && --pages > 0);
      this.problem.hidden = true;
      return { jobs, cursor };
    } catch (refusal) {
      if (!signal.aborted) this.complain(refusal);
      return undefined;
    } finally {
      if (this.walking === controller) {
        this.walking = undefined;
        this.grid.removeAttribute("aria-busy");
        if (this.changed) setTimeout(() => this.refresh());
        this.changed = false;
      }
    }
  }

  // read reads the list again. If the search has not changed, it reads only the beginning and keeps the rest.
  async read() {
    const asked = { q: this.search.value.trim(), status: this.state.value, model: this.model.value };
    const same = JSON.stringify(asked) === JSON.stringify(this.asked);
    const wanted = same ? Math.max(pageSize, this.jobs.length) : pageSize;
    const found = await this.walk(asked, undefined, wanted, firstPages);
    if (!found) return;
    const rest = same && found.cursor ? this.after(found.jobs, found.jobs.length < wanted) : [];
    if (!rest.length) this.note(found, firstPages);
    this.asked = asked;
    this.show([...found.jobs, ...rest]);
  }

  // after returns the shown jobs that follow the jobs just read, or an empty list if other jobs may be in between.
  after(read, searched) {
    const known = new Set(read.map(job => job.job_id)), last = new Date(read.at(-1)?.created_at ?? Date.now());
    if (!searched && !this.jobs.some(job => known.has(job.job_id))) return [];
    return this.jobs.filter(job => !known.has(job.job_id) && new Date(job.created_at) <= last);
  }

  // note records how a walk over this many pages ended. If the walk has found little, the next one starts only when
  // the user asks for it, and reads more pages.
  note(found, pages) {
    this.cursor = found.cursor;
    this.sparse = found.jobs.length < pageSize;
    this.pages = this.sparse ? Math.min(mostPages, Math.max(firstPages, 2 * pages)) : firstPages;
  }

  show(jobs) {
    const focused = this.grid.contains(document.activeElement) ? document.activeElement.closest("li").dataset.id : undefined;
    const cards = new Map([...this.grid.children].map(card => [card.dataset.id, card]));
    this.jobs = jobs;
    arrange(this.grid, jobs.map(job => {
      const old = cards.get(job.job_id);
      return old?.dataset.shown === stateKey(job) ? old : this.card(job);
    }));
    if (focused && !this.grid.contains(document.activeElement)) this.grid.querySelector(`[data-id="${CSS.escape(focused)}"] a`)?.focus();
    this.settle();
  }

  // settle updates the messages below the list, and shows whether the search can be continued.
  settle() {
    const { length } = this.jobs, narrowed = Object.values(this.asked).some(Boolean), further = Boolean(this.cursor);
    this.more.hidden = !further;
    this.more.lastChild.textContent = narrowed ? "Search further" : "More edits";
    this.searched.textContent = narrowed && further ? "Older edits have not been searched yet." : "";
    this.none.hidden = length > 0;
    const words = !narrowed ? "No edits yet" : further ? "No matches so far" : "No matches";
    // Replace the button only if the message changes: a click is lost if the button is replaced while it is pressed.
    if (this.none.querySelector("h2")?.textContent !== words) this.none.replaceChildren(icon("gallery"), make("h2", {}, words),
      make("p", {}, !narrowed ? "This page lists your edits for a week. Results are kept for a day." : further ? "None of the latest edits match." : "No edits from the last week match."),
      narrowed ? button("", "Show all edits", () => visit("jobs")) : make("a", { class: "button primary", href: address("edit") }, "Make an edit"));
    this.selection.show();
    if (narrowed) say(`${number(length)}${further ? " or more" : ""} edits match.`);
  }

  async next(pages) {
    if (!this.cursor || this.walking) return;
    const before = this.grid.children.length, pressed = document.activeElement === this.more;
    const found = await this.walk(this.asked, this.cursor, pageSize, pages);
    if (!found) return;
    this.note(found, pages);
    this.jobs.push(...found.jobs);
    this.grid.append(...found.jobs.map(job => this.card(job)));
    this.settle();
    if (pressed) (this.grid.children[before]?.querySelector("a") || this.more).focus();
    this.reach();
  }

  // reach loads more pages until the end of the list is out of view.
  reach() {
    if (this.cursor && !this.sparse && !this.list.hidden && !this.section.hidden && this.more.getBoundingClientRect().top < innerHeight + margin) this.next(1);
  }

  // gone updates the list after edits were deleted.
  gone(ids) {
    this.jobs = this.jobs.filter(job => !ids.includes(job.job_id));
    this.settle();
    if (ids.length) publish("jobs");
    if (!this.jobs.length && this.cursor) this.next(firstPages);
  }

  complain(refusal) {
    this.problem.textContent = refusal.message;
    this.problem.hidden = false;
  }

  card(job) {
    const model = modelOf(job), state = stateOf(job);
    const picture = make("div", { class: "thumb" }, icon(model?.kind === "image" ? "image" : "film"));
    const words = job.prompt || (job.inputs?.data?.name ?? job.model);
    const card = make("li", { class: "file job", "data-id": job.job_id, "data-status": state, "data-shown": stateKey(job) },
      make("a", { href: address("jobs", [job.job_id]), class: "job-link" }, picture,
        make("div", { class: "about" }, make("strong", { class: "file-name", title: words }, words),
          make("span", {}, [model ? titleOf(model) : job.model, job.inputs?.data?.name].filter(Boolean).join(" · ")),
          make("span", { class: "facts" }, make("span", { class: "dot" }), state === "processing" ? `${Math.floor(job.progress * 100)} %` : stateWords[state], " · ", since(job.created_at)))),
      ended(job) && this.selection.box(job.job_id, { name: words, done: job.status === "completed" }));
    this.picture(job, picture);
    return card;
  }

  // picture loads a job's picture when the job is scrolled into view.
  picture(job, place) {
    const watcher = new IntersectionObserver(async ([seen]) => {
      if (!seen.isIntersecting) return;
      watcher.disconnect();
      const shown = await jobPicture(job);
      if (!shown) return; // the job has no picture, so keep the icon
      place.replaceChildren(shown);
      const before = job.inputs?.data && job.changed !== false && await jobPicture(job, "input");
      if (before) {
        before.classList.add("was");
        place.append(before);
      }
    }, { rootMargin: "300px" });
    watcher.observe(place);
  }

  offer() {
    const { chosen } = this.selection, count = chosen.size;
    const done = count <= mostCompared && [...chosen.values()].every(one => one.done), can = done && count > 1;
    this.compared.hidden = !done;
    this.comparedWords.textContent = can ? `Compare ${count}` : "Select another to compare";
    if (can) this.compared.href = address("compare", [[...chosen.keys()].join(",")]);
    else this.compared.removeAttribute("href");
  }

  async open(id) {
    const back = make("a", { class: "button", href: address("jobs", [], this.asked && { q: this.asked.q, state: this.asked.status, model: this.asked.model }) }, icon("back"), make("span", {}, "All edits"));
    const stage = make("div", { class: "stage", "data-state": "working" }), does = make("div", { class: "actions" }), about = make("div", {});
    const title = make("h2", { class: "prompt-title" });
    this.detail.replaceChildren(make("div", { class: "row" }, back), title, stage, does, about);
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
      does.replaceChildren(...actions(run, { stage, edit: editResult, settings: run.model && useSettings, gone: () => visit("jobs") }));
      about.replaceChildren(...[notes(run), this.asks(run), terminal(run)].filter(Boolean));
    };
    if (!run.followed) {
      run.followed = true;
      run.listeners.add(draw);
    }
    await run.original();
    await draw();
    if (run.id && run.working && !run.watched) run.watch();
  }

  asks(run) {
    const rows = run.fields.filter(([name]) => name !== "prompt").map(([name, value]) => [make("dt", {}, name.replaceAll("_", " ")), make("dd", {}, typeof value === "object" ? value.name : value)]);
    return rows.length ? make("details", { class: "asked" }, make("summary", {}, "Request"), make("dl", { class: "facts-list" }, rows)) : undefined;
  }
}

// stateKey changes whenever a job's card must be drawn again.
const stateKey = job => [stateOf(job), job.progress].join();
