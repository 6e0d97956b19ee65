// The form for an edit: all fields of the chosen models except the media.

import { button, icon, make, number, signButton } from "./dom.js";
import { costOf, planned, planOf, priceOf } from "./cost.js";
import { factsOf, looks } from "./engine.js";
import { Hints } from "./hints.js";
import { chooseStored } from "./library.js";
import { examplesOf, kindOf, options, titleOf } from "./models.js";
import { smallOf, urlOf } from "./stored.js";

const greatestSeed = 4294967295;
const countFrom = 0.8; // the length of a prompt is shown from this fraction of the maximum
const mostRuns = 8; // the maximum number of runs that one form starts at once

export class Missing extends Error {
  constructor(message, control) {
    super(message);
    this.control = control;
  }
}

const labels = { enhance_prompt: "Enhance the prompt", self_anchor: "Anchor to the first edited frame", resolution: "Resolution", orientation: "Orientation" };

// isHEIC recognizes photos from Apple's phones. Most systems report no media type for them.
export const isHEIC = file => /^image\/hei[cf]/.test(file.type) || /\.hei[cf]$/i.test(file.name);

const titled = name => labels[name] || name.replaceAll("_", " ").replace(/^./, letter => letter.toUpperCase());
const codePoints = text => [...text].length;

// Form shows a model's fields, except "data". If the user selects another model with the same field, the field keeps
// its value.
export class Form {
  constructor(submit) {
    this.reference = undefined; // a File, or a reference to a stored file
    this.options = new Map(); // controls by field name
    this.onchange = () => {};
    this.shapes = async () => []; // resolves to the inputs' sizes, and lengths in seconds
    this.prompt = make("textarea", { id: "prompt", rows: 3, "aria-describedby": "prompt-count form-problem", on: { input: () => this.count() } });
    this.hints = new Hints(() => ({ model: this.chosen, prompt: this.prompt.value.trim().slice(0, 4000), reference: Boolean(this.takesReference && this.reference), shape: this.shape, resolution: this.resolution() }),
      (nothing, result) => {
        this.nothing = nothing;
        this.label();
        if (result) this.size.textContent = planned(result);
      });
    this.prompt.addEventListener("keydown", event => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      this.element.requestSubmit();
    });
    this.counter = make("p", { id: "prompt-count", class: "count" });
    this.chips = make("div", { class: "chips", role: "group", "aria-label": "Examples" });
    this.picker = make("input", { type: "file", accept: "image/*", class: "unseen", tabindex: -1, "aria-hidden": "true", on: { change: () => this.picker.files[0] && this.refer(this.picker.files[0]) } });
    this.referenceBox = make("div", { class: "reference" });
    this.model = make("select", { id: "model", "aria-describedby": "model-about", on: { change: () => this.onmodel(this.model.value) } });
    this.about = make("p", { class: "note", id: "model-about" });
    this.seed = make("input", { id: "seed", inputmode: "numeric", placeholder: "Random", autocomplete: "off" });
    this.results = make("select", { id: "results", on: { change: () => this.name() } }, [1, 2, 3, 4].map(count => make("option", { value: count }, count === 1 ? "1 result" : `${count} seeds`)));
    this.others = make("div", { class: "others", role: "group", "aria-label": "Also run with" });
    this.beside = make("details", { class: "beside" }, make("summary", {}, "Compare with other models"), this.others);
    this.extras = make("div", { class: "extras" });
    this.problem = make("p", { id: "form-problem", class: "problem", role: "alert" });
    this.cost = make("p", { class: "note cost", id: "cost", role: "status" });
    this.size = make("p", { class: "note", id: "result-size", role: "status" });
    this.words = make("span", {}, "Run edit");
    this.run = make("button", { class: "primary run" }, icon("arrow"), this.words);
    this.element = make("form", { class: "composer", novalidate: true, "aria-label": "The edit", on: {
      submit: event => {
        event.preventDefault();
        submit();
      },
      input: () => this.onchange(), change: () => this.onchange(),
    } },
      make("div", { class: "asking" }, make("div", { class: "label-row" }, make("label", { for: "prompt" }, "Prompt"), this.counter), this.prompt),
      this.hints.element, this.chips,
      this.referenceBox, this.picker,
      make("div", { class: "field" }, make("label", { for: "model" }, "Model"), this.model, this.about),
      make("div", { class: "settings" },
        make("div", { class: "field" }, make("label", { for: "results" }, "Results"), this.results),
        make("div", { class: "field seed" }, make("label", { for: "seed" }, "Seed"),
          make("div", { class: "joined" }, this.seed, signButton("dice", "Draw a seed", () => {
            this.seed.value = drawSeed();
            this.onchange();
          }))),
        this.extras),
      this.beside,
      make("div", { class: "go" }, this.problem, this.run, this.size, this.cost));
    this.showReference();
  }

  // offer lists the models to choose from, and selects one.
  offer(models, chosen) {
    this.models = models;
    this.model.replaceChildren(...options(models));
    this.model.value = chosen.id;
    this.fit(chosen);
  }

  fit(model) {
    const kept = new Map([...this.options].map(([name, control]) => [name, control.type === "checkbox" ? control.checked : control.value]));
    const beside = this.besides();
    const kind = kindOf(model);
    this.chosen = model;
    this.options.clear();
    this.extras.replaceChildren();
    this.about.textContent = [model.description, priceOf(model)].filter(Boolean).join(" ");
    this.prompt.placeholder = kind.ask;
    this.suggest(examplesOf(model));
    this.ignores = undefined;
    this.takesReference = model.fields.find(field => field.type === "image" && field.name !== "data");
    this.showReference();
    for (const field of model.fields) this.offerField(field, kept);
    const rest = this.models.filter(one => one !== model);
    this.beside.hidden = rest.length === 0;
    this.others.replaceChildren(...rest.map(one => {
      const control = make("input", { type: "checkbox", value: one.id, on: { change: () => this.name() } });
      control.checked = beside.includes(one);
      return make("label", { title: one.description }, control, make("span", {}, titleOf(one)), make("small", {}, [one.id, priceOf(one)].filter(Boolean).join(", ")));
    }));
    this.count();
    this.name();
    this.learn(model);
  }

  // learn hides fields that the engine ignores. It also offers the engine's options.
  async learn(model) {
    const { ignores, same_as: same, engine } = await factsOf(model);
    if (model !== this.chosen) return;
    this.ignores = ignores;
    const offered = [];
    for (const input of this.others.querySelectorAll("input")) {
      const { same_as: sameAsIt } = await factsOf(this.models.find(one => one.id === input.value));
      if (model !== this.chosen) return;
      if (!same.includes(input.value) && !offered.some(id => sameAsIt.includes(id))) {
        offered.push(input.value);
        continue;
      }
      Object.assign(input, { checked: false, disabled: true });
      input.parentElement.querySelector("small").append(`, same result with the ${engine} engine`);
    }
    for (const one of this.models) if ((await factsOf(one)).unsupported) this.forbid(one);
    if (model !== this.chosen) return;
    this.settle();
    this.name();
    const known = await looks();
    if (model !== this.chosen || !known?.looks.length) return;
    if (model.kind === "text-to-video" && !model.examples?.length && known.scenes.length) this.suggest(known.scenes.slice(0, 8));
    this.chips.append(make("a", { class: "button", href: "#looks" }, `All ${known.looks.length} looks`));
  }

  // forbid disables a model that needs another engine.
  forbid(model) {
    const option = [...this.model.options].find(option => option.value === model.id);
    if (!option.disabled) option.append(", needs a GPU engine");
    option.disabled = true;
    const control = [...this.others.querySelectorAll("input")].find(input => input.value === model.id);
    if (!control || control.disabled) return;
    Object.assign(control, { checked: false, disabled: true });
    control.parentElement.querySelector("small").append(", needs a GPU engine");
  }

  suggest(examples) {
    this.chips.replaceChildren(...examples.map(words => make("button", { type: "button", on: { click: () => {
      this.prompt.value = words;
      this.count();
      this.prompt.focus();
      this.onchange();
    } } }, words)));
  }

  // settle hides the controls that have no effect in combination with the current values.
  settle() {
    const filled = { prompt: this.prompt.value.trim(), reference_image: this.takesReference && this.reference };
    const places = new Map([...this.options].map(([name, control]) => [name, [control, control.closest(".field, .toggle")]]));
    places.set("seed", [this.seed, this.seed.closest(".field")]);
    for (const [name, [control, place]] of places) {
      const rule = this.ignores?.[name];
      const idle = Boolean(rule && !(rule.unless && filled[rule.unless]));
      control.disabled = place.hidden = idle;
    }
  }

  offerField(field, kept) {
    if (field.type === "choice" && field.values.length > 1) {
      const control = make("select", { id: `field-${field.name}`, on: { change: () => this.estimate() } }, field.values.map(value => make("option", { value }, value)));
      control.value = field.values.includes(kept.get(field.name)) ? kept.get(field.name) : field.default ?? field.values[0];
      this.options.set(field.name, control);
      this.extras.append(make("div", { class: "field" }, make("label", { for: control.id }, titled(field.name)), control));
    } else if (field.type === "boolean") {
      const control = make("input", { type: "checkbox", id: `field-${field.name}`, class: "switch" });
      control.checked = kept.get(field.name) ?? field.default ?? false;
      this.options.set(field.name, control);
      this.extras.append(make("label", { class: "toggle", title: field.description }, control, make("span", {}, titled(field.name))));
    }
  }

  besides() {
    return [...this.others.querySelectorAll("input:checked")].map(input => this.models.find(model => model.id === input.value)).filter(Boolean);
  }

  // longest returns the maximum length of a prompt in characters. It applies to all chosen models.
  longest() {
    return this.chosen.fields.find(field => field.name === "prompt")?.max ?? 4000;
  }

  count() {
    const length = codePoints(this.prompt.value), longest = this.longest();
    this.counter.textContent = length > longest * countFrom ? `${number(length)} of ${number(longest)} characters` : "";
    this.counter.classList.toggle("over", length > longest);
    this.hints.soon();
    this.settle();
  }

  name() {
    this.label();
    this.estimate();
  }

  label() {
    const runs = (1 + this.besides().length) * +this.results.value, kind = kindOf(this.chosen);
    this.run.classList.toggle("primary", !this.nothing);
    this.words.textContent = this.nothing ? "Run anyway" : runs === 1 ? kind.run : `Run ${runs} ${kind.one}s`;
  }

  async estimate() {
    const estimating = this.estimating = {};
    const shapes = await this.shapes();
    if (this.estimating !== estimating) return;
    this.shape = shapes[0];
    this.size.textContent = planOf(this.chosen, this.resolution(), this.shape);
    this.hints.soon();
    const words = await costOf([this.chosen, ...this.besides()], shapes.map(shape => shape?.seconds), +this.results.value);
    if (this.estimating === estimating) this.cost.textContent = words;
  }

  resolution() {
    return this.options.get("resolution")?.value || this.chosen.fields.find(field => field.name === "resolution")?.default;
  }

  // refer selects a reference image: a File, or a reference to a stored file.
  refer(image) {
    this.picker.value = "";
    this.problem.textContent = "";
    this.reference = image;
    this.showReference();
    this.hints.soon();
    this.settle();
    this.onreference?.(image);
  }

  showReference() {
    if (this.shown) URL.revokeObjectURL(this.shown);
    this.shown = undefined;
    this.referenceBox.hidden = !this.takesReference;
    if (!this.reference) {
      this.referenceBox.replaceChildren(
        button("image", this.chosen?.kind === "image-to-video" ? "Last image" : "Reference image", () => this.picker.click(), { title: this.takesReference?.description }),
        signButton("files", "A stored image as the reference", async () => {
          const image = await chooseStored("image");
          if (image) this.refer(image);
        }));
      return;
    }
    const local = this.reference instanceof File, image = this.reference;
    const sign = icon("image");
    if (local) this.shown = URL.createObjectURL(image);
    else smallOf(image).then(url => url || urlOf(image)).then(url => url && sign.replaceWith(make("img", { src: url, alt: "The reference image" })));
    this.referenceBox.replaceChildren(
      make("span", { class: "chosen" },
        local ? make("img", { src: this.shown, alt: "The reference image" }) : sign,
        make("span", { class: "file-name" }, local ? this.reference.name : this.reference.filename),
        signButton("close", "Remove the reference image", () => {
          this.refer(undefined);
          this.referenceBox.querySelector("button").focus();
        })));
  }

  // plans returns {model, fields} for each combination of model and seed. It throws Missing if the service would
  // reject the fields.
  plans(source) {
    this.problem.textContent = "";
    const seed = this.seed.value.trim(), count = +this.results.value, models = [this.chosen, ...this.besides()];
    if (seed && !(/^\d{1,10}$/.test(seed) && +seed <= greatestSeed)) throw new Missing(`A seed is a whole number from 0 to ${greatestSeed}.`, this.seed);
    if (models.length * count > mostRuns) throw new Missing(`This would start ${models.length * count} runs. The maximum is ${mostRuns}.`, this.results);
    // Use the same seeds for all models.
    const seeds = Array.from({ length: count }, (_, i) => i === 0 ? seed || (models.length > 1 ? drawSeed() : "") : drawSeed());
    return seeds.flatMap(seed => models.map(model => ({ model, fields: this.fields(model, source, seed) })));
  }

  fields(model, source, seed) {
    const prompt = this.prompt.value.trim();
    const takesReference = model.fields.some(field => field.type === "image" && field.name !== "data");
    const reference = takesReference ? this.reference : undefined;
    if (codePoints(prompt) > this.longest()) throw new Missing(`The prompt has ${number(codePoints(prompt))} characters. The limit is ${number(this.longest())}.`, this.prompt);
    if (model.exactly_one && !prompt === !reference) {
      throw new Missing(prompt ? "This model takes a prompt or a reference image, not both." : "Write a prompt, or add a reference image.", this.prompt);
    }
    const values = { data: source, prompt, reference_image: reference, seed };
    const sent = [];
    for (const field of model.fields) {
      let value = field.name in values ? values[field.name] : undefined;
      const control = this.options.get(field.name);
      if (control) value = control.type === "checkbox" ? String(control.checked) : control.value;
      if (value === undefined || value === "") {
        if (field.required) throw new Missing(field.name === "prompt" ? "This model needs a prompt." : "Add a file first.", field.name === "prompt" ? this.prompt : undefined);
        continue;
      }
      if (control?.tagName === "SELECT" && !field.values?.includes(value)) continue; // from another model
      const needs = model.only_with?.[field.name];
      if (needs && !values[needs]) continue;
      sent.push([field.name, value instanceof File || typeof value === "string" ? value : value.id]);
    }
    // The service would accept an edit without a prompt and change nothing.
    if (!prompt && !reference && model.kind !== "image-to-video") throw new Missing(takesReference ? "Write what to change, or add a reference image." : "Write what to change.", this.prompt);
    return sent;
  }

  // state returns the form's values without files. fill restores them.
  state() {
    return {
      model: this.chosen?.id, prompt: this.prompt.value, seed: this.seed.value, results: this.results.value,
      beside: this.besides().map(model => model.id),
      options: [...this.options].map(([name, control]) => [name, control.type === "checkbox" ? control.checked : control.value]),
    };
  }

  fill({ prompt, seed, results = "1", options = [], beside = [] }) {
    if (prompt !== undefined) this.prompt.value = prompt;
    if (seed !== undefined) this.seed.value = seed;
    this.results.value = results;
    for (const input of this.others.querySelectorAll("input")) input.checked = beside.includes(input.value);
    if (beside.length) this.beside.open = true;
    for (const [name, value] of options) {
      const control = this.options.get(name);
      if (control?.type === "checkbox") control.checked = value === true || value === "true";
      else if (control && [...control.options].some(option => option.value === value)) control.value = value;
    }
    this.problem.textContent = "";
    this.count();
    this.name();
  }

  complain(missing) {
    this.problem.textContent = missing.message;
    // On a phone, the end of the form is below the visible screen, so scroll to the message.
    this.problem.scrollIntoView({ block: "nearest" });
    missing.control?.focus();
  }
}

export const drawSeed = () => String(crypto.getRandomValues(new Uint32Array(1))[0]);
