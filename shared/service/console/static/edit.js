// The Edit page: the user chooses a file, describes the edit, and compares before and after.

import { button, bytes, icon, make, say, signButton, toast } from "./dom.js";
import { fitTo, view } from "./compare.js";
import { shapeOf } from "./cost.js";
import { cut } from "./cut.js";
import { drawSeed, Form, isHEIC, Missing } from "./edit-form.js";
import { record } from "./jobs.js";
import { chooseStored } from "./library.js";
import { modeOf, modes as allModes } from "./models.js";
import { announce } from "./notify.js";
import { actions, notes, showFailure, showProgress, showResult, terminal } from "./result.js";
import { pass, settle, visit } from "./router.js";
import { Run, Shared } from "./run.js";
import { sample } from "./sample.js";
import { settings } from "./service.js";
import { Strip } from "./strip.js";
import { depict, urlOf } from "./stored.js";
import { uploading } from "./upload.js";
import { get, put } from "./vault.js";

const mostRuns = 8; // how many runs may be started at once
const mostFiles = 8;
const draftName = "cutroom-draft", runsName = "cutroom-runs";

const preferred = models => models.find(model => model.kind === "edit") || models[0];

// waiting holds what another page has passed to this one: {file, as}, {run} or {prompt}.
let waiting;

// useStored opens the page with a stored file to edit, or as the reference image.
export function useStored(file, as) {
  waiting = { file, as };
  visit("edit", as === "source" ? [allModes.find(mode => file.mime_type.startsWith(`${mode.id}/`))?.id || "video"] : []);
}

export function useSettings(run) {
  waiting = { run };
  visit("edit", run.mode ? [run.mode.id] : []);
}

// usePrompt opens the page with a prompt. mode is optional.
export function usePrompt(prompt, mode) {
  waiting = { prompt };
  visit("edit", mode ? [mode] : []);
}

export async function editResult(run) {
  const file = new File([run.blob], `edited-${run.id}.${run.kind === "image" ? "png" : "mp4"}`, { type: run.blob.type });
  waiting = { file, as: "source" };
  visit("edit", [run.kind]);
}

export const underway = uploading;

export const editPage = { id: "edit", title: "Edit", sign: "edit", quiet: true, open: section => new Edit(section) };

const keep = (name, value) => {
  try {
    sessionStorage.setItem(name, JSON.stringify(value));
  } catch {
    // The tab's storage is full or disabled. After a reload, the page will be empty.
  }
};

const kept = name => {
  try {
    return JSON.parse(sessionStorage.getItem(name)) || {};
  } catch {
    return {};
  }
};

class Edit {
  constructor(section) {
    this.section = section;
    this.sources = {}; // by mode: lists of {value: a File or a reference, url, name, size, kept}
    this.at = {}; // by mode: the index of the source that is shown
    this.models = {}; // by mode: the model that was chosen last
    this.forms = {}; // by mode: the form's values
    this.picked = {}; // by mode: the run that is shown
    this.form = new Form(() => this.run());
    this.form.onmodel = id => this.choose(id);
    this.form.onchange = () => this.keepDraft();
    this.form.shapes = () => this.shapes();
    this.form.onreference = image => this.keepReference(image);
    this.modes = allModes.map(mode => ({ ...mode, models: settings.models.filter(mode.takes) })).filter(mode => mode.models.length);
    this.tabs = this.modes.map(mode => make("label", {}, make("input", { type: "radio", name: "mode", value: mode.id, on: { change: () => this.turn(mode) } }), make("span", {}, icon(mode.sign), mode.title)));
    this.picker = make("input", { type: "file", multiple: true, class: "unseen", tabindex: -1, "aria-hidden": "true", on: { change: () => {
      this.take([...this.picker.files]);
      this.picker.value = "";
    } } });
    this.stage = make("div", { class: "stage" });
    this.actions = make("div", { class: "actions" });
    this.notes = make("div", {});
    this.terminal = make("div", { class: "terminal" });
    this.strip = new Strip(run => this.look(run), () => this.shownRun(), () => this.back());
    section.append(
      make("div", { class: "work" },
        make("div", { class: "choices modes", role: "radiogroup", "aria-label": "What to edit" }, this.tabs),
        this.stage, this.actions, this.notes, this.terminal, this.picker),
      this.form.element, this.strip.element);
    this.listen(section);
    this.restored = this.restore();
  }

  async shown({ parts: [id, job] }) {
    await this.restored;
    const mode = this.modes.find(mode => mode.id === id) || this.mode || this.modes[0];
    const { file, as, run, prompt } = waiting || {};
    waiting = undefined;
    if (!this.mode) this.enter(mode);
    if (prompt !== undefined) this.begin(id ? mode : this.mode.id === "words" ? this.modes[0] : this.mode, prompt);
    else if (run) await this.fill(run);
    else if (as === "reference") this.form.refer(file);
    else if (file) await this.takeStored(file);
    else if (job) await this.open(mode, job);
    else this.enter(id ? mode : this.mode || mode, id ? undefined : this.picked[(this.mode || mode).id]);
    this.strip.read();
  }

  // begin opens the form with a prompt that the user chose on another page.
  begin(mode, prompt) {
    this.enter(mode);
    this.form.fill({ ...this.form.state(), prompt });
    settle("edit", this.place());
    this.form.prompt.focus();
    this.keepDraft();
  }

  async open(mode, id) {
    let run = this.strip.find(id);
    if (!run) {
      try {
        run = Run.ofJob(await record(id));
        this.strip.add(run);
      } catch (refusal) {
        this.enter(mode);
        return this.form.complain(new Missing(refusal.status === 404 ? "This edit is unknown or was deleted." : refusal.message));
      }
    }
    this.enter(this.modes.find(one => one.id === run.mode?.id) || mode, run);
  }

  turn(mode) {
    pass("edit", this.place(mode, this.picked[mode.id]));
    this.enter(mode, this.picked[mode.id]);
  }

  // place returns the address of a run in a mode. The defaults are the current mode and run.
  place(mode = this.mode, run = this.shownRun()) {
    return [mode.id, ...run?.id ? [run.id] : []];
  }

  shownRun() { return this.picked[this.mode?.id]; }

  // listen accepts files that are dropped anywhere on the page or pasted.
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
      const files = [...event.dataTransfer.files];
      if (files.length === 1 && event.target.closest(".composer") && files[0].type.startsWith("image/") && this.form.takesReference) this.form.refer(files[0]);
      else this.take(files);
    });
    document.addEventListener("paste", event => {
      const files = [...event.clipboardData.files];
      if (!files.length || section.hidden) return;
      event.preventDefault();
      this.take(files);
    });
  }

  // enter switches to a mode and shows the run, or the form if there is no run.
  enter(mode, run) {
    if (this.mode !== mode) {
      if (this.mode) this.forms[this.mode.id] = this.form.state();
      this.mode = mode;
      this.tabs[this.modes.indexOf(mode)].querySelector("input").checked = true;
      this.picker.accept = `${mode.id}/*`;
      this.form.offer(mode.models, this.models[mode.id] || preferred(mode.models));
      this.form.fill({ prompt: "", seed: "", ...this.forms[mode.id] });
    }
    this.picked[mode.id] = run;
    this.draw();
    this.keepDraft();
  }

  choose(id) {
    const model = this.mode.models.find(model => model.id === id);
    this.models[this.mode.id] = model;
    this.form.fit(model);
    this.keepDraft();
  }

  // take selects the files to edit, each in the mode for its type. If a single picture comes with a video, it becomes
  // the video's reference image.
  take(files) {
    if (!files.length) return;
    const chosen = new Map();
    let trouble;
    for (const file of files) {
      // Some systems report no type for extensions that they do not know. Then the service detects the type from the
      // content.
      const mode = isHEIC(file) ? this.modes.find(mode => mode.id === "image") : file.type ? this.modes.find(mode => file.type.startsWith(`${mode.id}/`)) : this.mode.id !== "words" && this.mode;
      if (mode) chosen.set(mode, [...chosen.get(mode) || [], file]);
      else trouble ??= new Missing(`“${file.name}” is neither a video nor an image.`);
    }
    const [video, image] = ["video", "image"].map(id => this.modes.find(mode => mode.id === id));
    if (chosen.has(video) && chosen.get(image)?.length === 1) {
      this.form.refer(chosen.get(image)[0]);
      chosen.delete(image);
    }
    const mode = [...chosen.keys()][0];
    if (mode) {
      const list = chosen.get(mode);
      if (list.length > mostFiles) trouble ??= new Missing(`Only the first ${mostFiles} of ${list.length} files are used.`);
      this.setSources(mode, list.slice(0, mostFiles).map(file => this.sourceOf(file)));
    }
    if (trouble) this.form.complain(trouble);
  }

  sourceOf(file) {
    const source = { value: file, name: file.name, size: file.size, url: URL.createObjectURL(file), kept: `source ${crypto.getRandomValues(new Uint32Array(2)).join("-")}` };
    put(source.kept, file);
    return source;
  }

  async takeStored(file) {
    if (file instanceof File) return this.take([file]);
    const mode = this.modes.find(mode => file.mime_type.startsWith(`${mode.id}/`));
    if (!mode) return;
    const source = { value: file, name: file.filename, size: file.size_bytes };
    this.setSources(mode, [source]);
    source.url = await urlOf(file);
    if (source.url && this.sources[mode.id]?.includes(source) && !this.shownRun()) this.draw();
  }

  setSources(mode, list) {
    this.form.problem.textContent = "";
    this.sources[mode.id] = list;
    this.at[mode.id] = 0;
    this.enter(mode);
    settle("edit", this.place());
    if (matchMedia("(pointer: fine)").matches) this.form.prompt.focus();
  }

  draw() {
    this.shownPhase = undefined;
    const run = this.shownRun();
    this.strip.anew.hidden = !run;
    this.strip.show();
    this.form.estimate();
    if (run) return this.drawRun(run);
    this.drawSource();
  }

  // shapes resolves to the shapes of all sources, beginning with the shown one.
  shapes() {
    const list = this.sources[this.mode?.id] || [], at = this.at[this.mode?.id] || 0;
    return Promise.all([...list.slice(at), ...list.slice(0, at)].map(source => source.url && (source.shape ??= shapeOf(source.url, this.mode.id === "image"))));
  }

  clear() {
    for (const place of [this.terminal, this.actions, this.notes]) place.replaceChildren();
  }

  drawSource() {
    const list = this.sources[this.mode.id] || [], source = list[this.at[this.mode.id] || 0];
    this.clear();
    this.stage.style.removeProperty("--ratio");
    this.stage.dataset.state = source ? "ready" : "empty";
    if (this.mode.id === "words") {
      this.stage.dataset.state = "empty";
      return this.stage.replaceChildren(make("div", { class: "empty" }, icon("words"), make("h2", {}, "A video from text"), make("p", {}, "Describe the video that you want.")));
    }
    if (!source) return this.drawEmpty();
    this.stage.replaceChildren(this.shownSource(source), make("span", { class: "tag before" }, "Original"));
    this.actions.replaceChildren(...[
      list.length > 1 ? make("ul", { class: "chosen-files", "aria-label": "Files to edit" }, list.map((one, i) => this.chosenFile(list, one, i)))
        : make("p", { class: "file-name" }, source.name, make("span", {}, bytes(source.size))),
      source.value instanceof File && source.url && button("cut", this.mode.id === "video" ? "Trim and crop" : "Crop", () => this.cut(source), { id: "cut" }),
      button("edit", list.length > 1 ? "Other files" : "Another file", () => this.picker.click()),
      signButton("close", "Remove the file", () => this.setSources(this.mode, [])),
    ].filter(Boolean));
  }

  cut(source) {
    const mode = this.mode;
    cut(mode.id, source, (file, message) => {
      const list = this.sources[mode.id].map(one => one === source ? this.sourceOf(file) : one);
      this.setSources(mode, list);
      if (message) toast(message);
    }, frame => this.take([frame]));
  }

  chosenFile(list, one, i) {
    const shown = i === (this.at[this.mode.id] || 0);
    return make("li", {},
      make("button", { type: "button", "aria-pressed": String(shown), on: { click: () => {
        this.at[this.mode.id] = i;
        this.draw();
      } } }, make("span", { class: "file-name" }, one.name)),
      signButton("close", `Leave ${one.name} out`, () => this.setSources(this.mode, list.filter(other => other !== one))));
  }

  drawEmpty() {
    const what = this.mode.id === "image" ? "an image" : "a video";
    const touch = matchMedia("(pointer: coarse)").matches;
    const choose = words => make("button", { type: "button", class: touch ? "primary" : "link", id: "choose", on: { click: () => this.picker.click() } }, words);
    const trial = button("film", `Try it with a sample ${this.mode.id === "image" ? "image" : "clip"}`, async () => {
      trial.disabled = true;
      try {
        this.take([await sample(this.mode.id)]);
      } catch {
        this.form.complain(new Missing("The sample could not be loaded. Try again."));
        trial.disabled = false;
      }
    }, { id: "sample" });
    this.stage.replaceChildren(make("div", { class: "empty" },
      icon(this.mode.sign),
      touch ? [make("h2", {}, `Start with ${what}`), make("p", {}, choose(`Choose ${what}`))]
        : [make("h2", {}, `Drop ${what} here`), make("p", {}, "or paste it, or ", choose("choose a file"))],
      make("div", { class: "row" }, trial, button("files", "Stored files", () => this.takeFromLibrary(), { id: "stored" }))));
  }

  async takeFromLibrary() {
    const file = await chooseStored(this.mode.id);
    if (file) await this.takeStored(file);
  }

  shownSource(source) {
    if (!source.url) return make("div", { class: "empty" }, icon(this.mode.sign), make("h2", {}, source.name), make("p", {}, "A stored file"));
    const shown = view(this.mode.id, source.url, "The original " + this.mode.id);
    if (this.mode.id === "video") shown.controls = true;
    fitTo(this.stage, shown);
    shown.addEventListener("error", async () => {
      if (!shown.isConnected || this.stage.dataset.state !== "ready") return;
      this.stage.style.removeProperty("--ratio");
      const why = "This browser cannot show the file. It may be damaged or in a format that only the service supports.";
      const empty = make("div", { class: "empty", role: "status" }, icon("alert"), make("h2", {}, source.name), make("p", {}, why));
      shown.replaceWith(empty);
      const picture = await depict(source.value);
      if (!picture || !empty.isConnected) return;
      const still = make("img", { src: picture, alt: "The original " + this.mode.id, title: "A small picture from the service" });
      fitTo(this.stage, still);
      empty.replaceWith(still);
    }, { once: true });
    return shown;
  }

  // run starts a run for each combination of file, model and seed.
  run() {
    const list = this.sources[this.mode.id] || [];
    let plans;
    try {
      plans = (list.length ? list : [undefined]).flatMap(source => {
        const plans = this.form.plans(source?.value);
        const shared = plans.length > 1 && source?.value instanceof File ? new Shared(source.value) : undefined;
        return plans.map(plan => ({ ...plan, source, shared }));
      });
      if (plans.length > mostRuns) throw new Missing(`This would start ${plans.length} runs. The maximum is ${mostRuns}.`);
    } catch (missing) {
      if (!(missing instanceof Missing)) throw missing;
      return this.form.complain(missing);
    }
    this.launch(plans.map(plan => new Run(plan)));
  }

  launch(runs) {
    for (const run of [...runs].reverse()) {
      this.follow(run);
      this.strip.add(run);
    }
    const mode = this.modes.find(mode => mode.id === runs[0].mode.id);
    if (this.shownRun()) pass("edit", this.place(mode, null)); // enter replaces this address with the new run's
    this.enter(mode, runs[0]);
    runs.forEach(run => run.start());
    // On a phone, the stage is one screen above the button, so scroll to it.
    this.stage.scrollIntoView({ block: "nearest" });
    if (runs.length > 1) say(`${runs.length} runs have started.`);
  }

  follow(run) {
    if (run.followed) return;
    run.followed = true;
    let id = run.id;
    run.listeners.add(() => {
      this.strip.update(run);
      if (run.id !== id && (id = run.id)) this.keepRuns();
      if (run === this.shownRun()) this.drawRun(run);
      if (["done", "failed"].includes(run.phase)) announce(run);
    });
  }

  // drawRun shows a run. While the run is working, later calls only update its progress.
  async drawRun(run) {
    this.follow(run);
    if (!this.section.hidden) settle("edit", this.place());
    if (run.id && run.working && !run.watched) run.watch();
    if (run.working) {
      if (this.shownPhase !== run) {
        this.clear();
        this.progress = showProgress(this.stage, run, run.source?.url);
        this.shownPhase = run;
        if (!run.source?.url) this.bringOriginal(run);
      }
      return this.progress();
    }
    this.shownPhase = undefined;
    this.clear();
    if (run.phase === "fetching") return run.watch(); // the job ended before this tab could show it
    if (run.phase === "done") {
      await showResult(this.stage, run);
      if (run !== this.shownRun()) return this.draw();
      this.actions.replaceChildren(...actions(run, { stage: this.stage, again: () => this.again(run), edit: editResult, settings: useSettings, gone: () => this.gone(run) }));
      this.notes.replaceChildren(notes(run));
      this.terminal.replaceChildren(...[terminal(run)].filter(Boolean));
      return say(run.unchanged ? "The result is unchanged." : "The edit has finished.");
    }
    if (run.phase === "failed" && !run.problem) return run.settle();
    showFailure(this.stage, run, button("", "Back", () => this.back()));
  }

  // bringOriginal shows a run's input behind its progress, if this browser has the input. After a reload, it must
  // first be read from the browser's storage.
  async bringOriginal(run) {
    if (!await run.original() || run !== this.shownRun() || !run.working) return;
    this.shownPhase = undefined;
    this.drawRun(run);
  }

  gone(run) {
    this.strip.remove(run);
    this.keepRuns();
    this.back();
  }

  back() {
    pass("edit", this.place(this.mode, null));
    this.enter(this.mode);
    this.form.prompt.focus();
  }

  look(run) {
    const mode = this.modes.find(mode => mode.id === run.mode?.id) || this.mode;
    pass("edit", this.place(mode, run));
    this.enter(mode, run);
    this.stage.scrollIntoView({ block: "nearest" });
  }

  // again repeats a run with another seed. It uses the run's own values, because the form may have changed since.
  async again(run) {
    const fields = run.fields.filter(([name]) => name !== "seed");
    const original = fields.find(([name, value]) => name === "data" && typeof value === "object" && !(value instanceof File));
    if (original) {
      await run.original();
      if (!(run.source?.value instanceof File)) return this.form.complain(new Missing("This browser no longer has the original. Choose the file again, then run the edit."));
      original[1] = run.source.value;
    }
    if (fields.some(([name, value]) => name !== "data" && typeof value === "object" && !(value instanceof File))) return this.form.complain(new Missing("This browser no longer has the reference image. Add it again, then run the edit."));
    fields.push(["seed", drawSeed()]);
    this.launch([new Run({ model: run.model, fields, source: run.source })]);
  }

  // fill copies a run's settings into the form, with its file if this browser still has it.
  async fill(run) {
    const job = run.job?.prompt?.endsWith("…") ? await record(run.id).catch(() => run.job) : run.job;
    const fields = new Map(run.job && !run.source?.value ? Run.ofJob(job).fields : run.fields), mode = this.modes.find(mode => mode.id === modeOf(run.model)?.id);
    if (!mode) return;
    await run.original();
    if (run.source?.value) this.sources[mode.id] = [run.source];
    this.models[mode.id] = run.model;
    this.mode = this.mode === mode ? undefined : this.mode; // makes enter show the mode's models again
    this.forms[mode.id] = { prompt: fields.get("prompt") || "", seed: String(run.seed ?? ""), options: [...fields].filter(([, value]) => typeof value === "string") };
    this.enter(mode);
    settle("edit", this.place());
    if (!run.source?.value && mode.id !== "words") this.form.complain(new Missing("The settings are filled in. Choose the file again, because this browser does not have it."));
    else this.form.prompt.focus();
  }

  keepDraft() {
    if (!this.mode) return;
    const sources = Object.fromEntries(Object.entries(this.sources).map(([mode, list]) => [mode, list.filter(source => source.kept).map(({ kept, name, size }) => ({ kept, name, size }))]));
    const models = Object.fromEntries(Object.entries(this.models).map(([mode, model]) => [mode, model.id]));
    keep(draftName, { mode: this.mode.id, forms: { ...this.forms, [this.mode.id]: this.form.state() }, sources, models, reference: this.referenceKept });
  }

  keepReference(image) {
    this.referenceKept = image instanceof File ? `reference ${crypto.getRandomValues(new Uint32Array(2)).join("-")}` : undefined;
    if (this.referenceKept) put(this.referenceKept, image);
    this.keepDraft();
  }

  keepRuns() {
    keep(runsName, { runs: this.strip.own().map(run => run.kept()) });
  }

  async restore() {
    const draft = kept(draftName);
    for (const one of kept(runsName).runs || []) {
      const model = settings.models.find(model => model.id === one.model);
      if (!model || !one.id) continue;
      const run = new Run({ ...one, model });
      this.follow(run);
      this.strip.add(run, true);
      run.resume();
    }
    for (const [id, list] of Object.entries(draft.sources || {})) {
      const files = await Promise.all(list.map(async one => ({ one, file: await get(one.kept) })));
      this.sources[id] = files.filter(({ file }) => file).map(({ one, file }) => ({ ...one, value: file, url: URL.createObjectURL(file) }));
    }
    this.forms = draft.forms || {};
    for (const [id, model] of Object.entries(draft.models || {})) this.models[id] = settings.models.find(one => one.id === model);
    this.mode = undefined;
    const mode = this.modes.find(mode => mode.id === draft.mode);
    if (mode) this.enter(mode);
    const reference = draft.reference && await get(draft.reference);
    if (reference) this.form.refer(reference);
  }
}
