// The page Edit: from a file and a prompt to before and after.

import { ago, button, bytes, copy, icon, make, say } from "./dom.js";
import { compare, view } from "./compare.js";
import { fetchCommand, submitCommand } from "./command.js";
import { drawSeed, Form, isHEIC, Missing, UnreadHEIC } from "./edit-form.js";
import { cancel, ended, follow, result, submit } from "./jobs.js";
import { Recent } from "./recent.js";
import { settings } from "./service.js";
import { urlOf } from "./stored.js";

const dataOf = model => model.fields.find(field => field.name === "data");
const modes = [
  { id: "video", title: "Video", sign: "film", takes: model => dataOf(model)?.type === "video" },
  { id: "image", title: "Image", sign: "image", takes: model => dataOf(model)?.type === "image" },
  { id: "words", title: "Text to video", sign: "words", takes: model => !dataOf(model) },
];

// preferred returns the model to select first: one that edits, if there is one.
const preferred = models => models.find(model => model.kind === "edit") || models[0];

// waiting is a stored file that another page has passed to this one.
let waiting;

// useStored makes the page edit a stored file, or use it as a reference image.
export function useStored(file, as) {
  waiting = { file, as };
  location.hash = "edit";
}

export const editPage = { id: "edit", title: "Edit", sign: "edit", quiet: true, open: section => new Edit(section) };

class Edit {
  constructor(section) {
    this.sources = {}; // by mode: {value: File or reference, url, name, size}
    this.models = {}; // by mode, the one chosen last
    this.known = new Map(); // what this tab knows about jobs: {mode, model, fields, source}
    this.form = new Form(() => this.run());
    this.form.onmodel = id => this.choose(id);
    this.modes = modes.map(mode => ({ ...mode, models: settings.models.filter(mode.takes) })).filter(mode => mode.models.length);
    this.tabs = this.modes.map(mode => make("label", {}, make("input", { type: "radio", name: "mode", value: mode.id, on: { change: () => this.enter(mode) } }), make("span", {}, icon(mode.sign), mode.title)));
    this.picker = make("input", { type: "file", class: "unseen", tabindex: -1, "aria-hidden": "true", on: { change: () => {
      if (this.picker.files[0]) this.take(this.picker.files[0]);
      this.picker.value = "";
    } } });
    this.stage = make("div", { class: "stage" });
    this.actions = make("div", { class: "actions" });
    this.terminal = make("div", { class: "terminal" });
    this.recent = new Recent(job => this.look(job), id => this.known.get(id)?.fields.find(([name]) => name === "prompt")?.[1]);
    section.append(
      make("div", { class: "work" },
        make("div", { class: "choices modes", role: "radiogroup", "aria-label": "What to edit" }, this.tabs),
        this.stage, this.actions, this.form.element, this.terminal, this.picker),
      this.recent.element);
    this.listen(section);
    this.enter(this.modes[0]);
  }

  shown() {
    this.recent.read();
    if (!waiting) return;
    const { file, as } = waiting;
    waiting = undefined;
    if (as === "reference") this.form.refer(file);
    else this.takeStored(file);
  }

  // listen accepts files that are dropped anywhere on the page, or pasted.
  listen(section) {
    const carries = event => [...event.dataTransfer?.types || []].includes("Files");
    let depth = 0;
    const over = shown => this.stage.classList.toggle("over", shown);
    section.addEventListener("dragenter", event => carries(event) && (event.preventDefault(), over(++depth > 0)));
    section.addEventListener("dragleave", () => over((depth = Math.max(0, depth - 1)) > 0));
    section.addEventListener("dragover", event => carries(event) && event.preventDefault());
    section.addEventListener("drop", event => {
      if (!carries(event)) return;
      event.preventDefault();
      over((depth = 0) > 0);
      const file = event.dataTransfer.files[0];
      if (file && event.target.closest(".asking") && file.type.startsWith("image/")) this.form.refer(file);
      else if (file) this.take(file);
    });
    document.addEventListener("paste", event => {
      const file = [...event.clipboardData.files][0];
      if (!file || section.hidden) return;
      event.preventDefault();
      this.take(file);
    });
  }

  enter(mode) {
    this.mode = mode;
    this.tabs[this.modes.indexOf(mode)].querySelector("input").checked = true;
    this.picker.accept = `${mode.id}/*`;
    this.form.offer(mode.models, this.models[mode.id] || preferred(mode.models));
    if (!this.working) this.reset();
  }

  choose(id) {
    const model = this.mode.models.find(model => model.id === id);
    this.models[this.mode.id] = model;
    this.form.fit(model);
  }

  // take makes a file the one to edit, in the mode for its kind.
  take(file) {
    if (isHEIC(file)) return this.form.complain(new UnreadHEIC(file));
    // Systems that do not know an extension report no type; the service detects it
    // from the content.
    const mode = file.type ? this.modes.find(mode => file.type.startsWith(`${mode.id}/`)) : dataOf(this.form.chosen) && this.mode;
    if (!mode) return this.form.complain(new Missing(`“${file.name}” is neither a video nor an image.`));
    this.setSource(mode, { value: file, name: file.name, size: file.size, url: URL.createObjectURL(file) });
  }

  async takeStored(file) {
    const mode = this.modes.find(mode => file.mime_type.startsWith(`${mode.id}/`));
    if (!mode) return;
    const source = { value: file, name: file.filename, size: file.size_bytes };
    this.setSource(mode, source);
    source.url = await urlOf(file);
    if (source.url && this.sources[this.mode.id] === source && this.stage.dataset.state === "ready") this.reset();
  }

  setSource(mode, source) {
    this.form.problem.textContent = "";
    this.sources[mode.id] = source;
    if (this.working) return;
    this.enter(mode);
    this.form.prompt.focus();
  }

  // reset shows what can be edited.
  reset() {
    const source = this.sources[this.mode.id];
    this.terminal.replaceChildren();
    this.actions.replaceChildren();
    this.stage.dataset.state = source ? "ready" : "empty";
    if (this.mode.id === "words") {
      this.stage.replaceChildren(make("div", { class: "empty" }, icon("words"), make("h2", {}, "A video from words"), make("p", {}, "Write what it should show, and run it.")));
    } else if (!source) {
      const kind = this.mode.id;
      this.stage.replaceChildren(make("div", { class: "empty" },
        icon(this.mode.sign), make("h2", {}, `Drop ${kind === "image" ? "an image" : "a video"} here`),
        make("p", {}, "or paste one, or ", make("button", { type: "button", class: "link", id: "choose", on: { click: () => this.picker.click() } }, "choose a file"))));
    } else {
      this.stage.replaceChildren(this.shownSource(source), make("span", { class: "tag before" }, "Original"));
      this.actions.replaceChildren(
        make("p", { class: "file-name" }, source.name, make("span", {}, bytes(source.size))),
        button("edit", "Another file", () => this.picker.click()));
    }
  }

  shownSource(source) {
    if (!source.url) return make("div", { class: "empty" }, icon(this.mode.sign), make("h2", {}, source.name), make("p", {}, "A stored file"));
    const shown = view(this.mode.id, source.url, "The original " + this.mode.id);
    if (this.mode.id === "video") shown.controls = true;
    return shown;
  }

  // run submits what the page shows, and follows the job to its end.
  async run(change = () => {}) {
    if (this.working) return;
    const mode = this.mode, model = this.form.chosen, source = this.sources[mode.id];
    let fields;
    try {
      change();
      fields = this.form.fields(source?.value);
    } catch (missing) {
      if (!(missing instanceof Missing)) throw missing;
      return this.form.complain(missing);
    }
    const work = this.begin();
    try {
      work.show(mode.id === "words" ? "Sending" : "Uploading", 0);
      const id = await submit(model, fields, { progress: share => work.show("Uploading", share), signal: work.signal });
      this.known.set(id, { mode, model, fields, source });
      await this.watch(work, id);
    } catch (failure) {
      if (failure.name === "AbortError") this.reset();
      else this.fail("The edit was not started.", failure.message, () => this.run());
    } finally {
      this.end(work);
    }
  }

  // watch follows a job, then shows its result.
  async watch(work, id) {
    try {
      work.id = id;
      const job = await follow(id, {
        signal: work.signal,
        seen: job => {
          this.recent.update(job);
          work.show(job.status === "pending" ? "Waiting for a worker" : "Editing", job.progress);
        },
        lost: gone => gone ? work.show("The connection is lost; trying again", undefined) : undefined,
      });
      if (job.status === "failed") {
        if (job.error?.code === "cancelled") this.reset();
        else this.fail("The edit failed.", job.error?.message || "No reason was given.", () => this.run());
        return;
      }
      work.show("Fetching the result", 1);
      this.finish(job, await result(id, work.signal));
    } catch (failure) {
      if (failure.name === "AbortError") this.reset();
      else this.fail("The result could not be fetched.", failure.message, () => this.look({ job_id: id, status: "processing" }));
    }
  }

  // begin shows progress until end is called, and lets only one job run at a time.
  begin() {
    const controller = new AbortController();
    const words = make("span", { class: "phase" }), share = make("span", { class: "share" }), bar = make("progress", { max: 1, "aria-label": "Progress" });
    let said = "";
    const work = { signal: controller.signal, show: (phase, part) => {
      words.textContent = phase;
      share.textContent = part === undefined ? "" : `${Math.floor(part * 100)} %`;
      if (part === undefined || phase.startsWith("Waiting")) bar.removeAttribute("value");
      else bar.value = part;
      const tenth = `${phase} ${part === undefined ? "" : Math.floor(part * 10) * 10 + " %"}`;
      if (tenth !== said) say(said = tenth);
    } };
    const stop = button("close", "Cancel", async () => {
      stop.disabled = true;
      if (!work.id) return controller.abort();
      try {
        const job = await cancel(work.id);
        this.recent.update(job);
        if (job.status === "failed") controller.abort();
      } catch (refusal) {
        stop.disabled = false;
        this.form.complain(new Missing(refusal.message));
      }
    }, { id: "cancel" });
    const source = this.sources[this.mode.id];
    this.stage.dataset.state = "working";
    this.stage.replaceChildren(
      this.mode.id === "words" || !source?.url ? make("div", { class: "blank" }) : this.shownSource(source),
      make("div", { class: "sheen" }),
      make("div", { class: "working" }, make("div", { class: "row" }, words, share, stop), bar));
    this.stage.querySelector("video")?.removeAttribute("controls");
    this.actions.replaceChildren();
    this.terminal.replaceChildren();
    this.form.problem.textContent = "";
    this.form.run.disabled = true;
    this.working = work;
    // On a phone, the stage is one screen away from the button.
    this.stage.scrollIntoView({ block: "nearest" });
    return work;
  }

  end(work) {
    if (this.working !== work) return;
    this.working = undefined;
    this.form.run.disabled = false;
    this.recent.read();
  }

  fail(title, why, again) {
    this.stage.dataset.state = "failed";
    this.stage.replaceChildren(make("div", { class: "empty", role: "alert" }, icon("close"), make("h2", {}, title), make("p", {}, why),
      make("div", { class: "row" }, button("again", "Try again", again, { class: "primary", id: "again" }), button("", "Back", () => this.reset()))));
  }

  // finish shows a result, beside its source if this tab knows it.
  finish(job, blob) {
    if (this.made) URL.revokeObjectURL(this.made);
    const url = this.made = URL.createObjectURL(blob);
    const known = this.known.get(job.job_id), kind = blob.type.startsWith("image/") ? "image" : "video";
    const name = `${job.job_id}.${kind === "image" ? "png" : "mp4"}`;
    const { box, bar } = compare(kind, known?.source?.url, url);
    this.stage.dataset.state = "done";
    this.stage.replaceChildren(box, ...(bar ? [bar] : []));
    this.actions.replaceChildren(
      make("a", { class: "button primary", id: "download", href: url, download: name }, icon("download"), make("span", {}, "Download")),
      ...(known ? [
        button("again", "Run again with another seed", () => this.run(() => { this.form.seed.value = drawSeed(); }), { id: "reseed" }),
        button("edit", "Change the edit", () => { this.reset(); this.form.prompt.focus(); }),
      ] : [button("edit", "New edit", () => this.reset())]),
      make("p", { class: "made" }, `${job.model} · seed ${job.seed} · ${seconds(job)}`, job.enhanced_prompt && make("span", {}, `Prompt as enhanced: ${job.enhanced_prompt}`)));
    if (known) this.showCommands(job, known, name);
    say("The edit is done.");
  }

  showCommands(job, known, name) {
    const fields = known.fields.filter(([field]) => field !== "seed");
    if (known.model.fields.some(field => field.name === "seed")) fields.push(["seed", String(job.seed)]);
    const lines = [["Submit the same edit", submitCommand(known.model, fields)], ["Fetch this result", fetchCommand(job.job_id, name)]];
    this.terminal.replaceChildren(make("details", {}, make("summary", {}, "The same from a terminal"), lines.map(([title, line]) =>
      make("figure", { class: "command" },
        make("figcaption", {}, title, button("copy", "Copy", () => copy(line, "The line was"), { "aria-label": `Copy: ${title}` })),
        make("pre", { tabindex: 0, "aria-label": title }, make("code", {}, line))))));
  }

  // look shows a job of the account's list: its result, or its progress.
  async look(job) {
    if (this.working) return this.form.complain(new Missing("Wait until the edit under way has ended, or cancel it."));
    if (job.status === "failed") {
      return this.fail("This edit failed.", `${job.error?.message || "No reason was given."} (${job.model}, ${ago(job.created_at)})`, () => this.reset());
    }
    const known = this.known.get(job.job_id);
    if (known) this.enter(known.mode);
    const work = this.begin();
    work.show(ended(job) ? "Fetching the result" : "Editing", ended(job) ? 1 : job.progress);
    await this.watch(work, job.job_id);
    this.end(work);
  }
}

// seconds returns how long a job took since its creation.
function seconds(job) {
  const took = (new Date(job.completed_at) - new Date(job.created_at)) / 1000;
  return took < 60 ? `${took.toFixed(1)} s` : `${Math.floor(took / 60)} min ${Math.round(took % 60)} s`;
}
