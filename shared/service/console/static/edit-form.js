// The form of an edit: what the chosen model takes besides the media.

import { button, icon, make, signButton } from "./dom.js";
import { urlOf } from "./stored.js";

const examples = ["a watercolor painting", "cyberpunk neon city", "film noir", "anime", "pencil sketch", "golden hour", "pop art", "snowy winter"];
const greatestSeed = 4294967295;

// Missing is what a form lacks, with the control that would provide it.
export class Missing extends Error {
  constructor(message, control) {
    super(message);
    this.control = control;
  }
}

// labels are shown for fields; others are shown by their names.
const labels = { enhance_prompt: "Enhance the prompt", self_anchor: "Anchor to the first edited frame", resolution: "Resolution", orientation: "Orientation" };

// isHEIC reports whether a file is a picture in the format of Apple's phones. Most
// systems report no type for such files.
export const isHEIC = file => /^image\/hei[cf]/.test(file.type) || /\.hei[cf]$/i.test(file.name);

// UnreadHEIC says what to do with such a picture, which the service cannot read.
export class UnreadHEIC extends Missing {
  constructor(file) {
    super(`“${file.name}” is a HEIC picture, which is not read here. Save it as JPEG or PNG, and add that.`);
  }
}

const titled = name => labels[name] || name.replaceAll("_", " ").replace(/^./, letter => letter.toUpperCase());

// Form shows a model's fields, except its data. A value stays if the next model has
// the same field.
export class Form {
  constructor(submit) {
    this.reference = undefined; // a File, or a stored file's reference
    this.options = new Map(); // controls by the name of the field
    this.prompt = make("textarea", { id: "prompt", rows: 2, maxlength: 4000, placeholder: "Describe the edit: “a watercolor painting”", "aria-describedby": "form-problem" });
    this.prompt.addEventListener("keydown", event => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      this.element.requestSubmit();
    });
    this.chips = make("div", { class: "chips", role: "group", "aria-label": "Examples" }, examples.map(words => make("button", { type: "button", on: { click: () => {
      this.prompt.value = words;
      this.prompt.focus();
    } } }, words)));
    this.picker = make("input", { type: "file", accept: "image/*", class: "unseen", tabindex: -1, "aria-hidden": "true", on: { change: () => this.picker.files[0] && this.refer(this.picker.files[0]) } });
    this.referenceBox = make("div", { class: "reference" });
    this.model = make("select", { id: "model", on: { change: () => this.onmodel(this.model.value) } });
    this.seed = make("input", { id: "seed", inputmode: "numeric", placeholder: "Random", autocomplete: "off" });
    this.extras = make("div", { class: "extras" });
    this.problem = make("p", { id: "form-problem", class: "problem", role: "alert" });
    this.run = make("button", { class: "primary run" }, icon("arrow"), make("span", {}, "Run edit"));
    this.about = make("p", { class: "note" });
    this.element = make("form", { class: "composer", novalidate: true, on: { submit: event => {
      event.preventDefault();
      submit();
    } } },
      make("div", { class: "asking" }, make("label", { for: "prompt" }, "Prompt"), this.prompt, this.referenceBox, this.picker),
      this.chips,
      make("div", { class: "settings" },
        make("div", { class: "field" }, make("label", { for: "model" }, "Model"), this.model),
        make("div", { class: "field seed" }, make("label", { for: "seed" }, "Seed"),
          make("div", { class: "joined" }, this.seed, signButton("dice", "Draw a seed", () => { this.seed.value = drawSeed(); }))),
        this.extras,
        this.run),
      this.problem, this.about);
    this.showReference();
  }

  // offer shows the models to choose from, and selects one.
  offer(models, chosen) {
    this.model.replaceChildren(...models.map(model => make("option", { value: model.id }, model.id)));
    this.model.value = chosen.id;
    this.fit(chosen);
  }

  fit(model) {
    const kept = new Map([...this.options].map(([name, control]) => [name, control.type === "checkbox" ? control.checked : control.value]));
    this.chosen = model;
    this.options.clear();
    this.extras.replaceChildren();
    this.about.textContent = model.description;
    this.takesReference = model.fields.find(field => field.type === "image" && field.name !== "data");
    this.showReference();
    for (const field of model.fields) {
      if (field.type === "choice" && field.values.length > 1) {
        const control = make("select", { id: `field-${field.name}` }, field.values.map(value => make("option", { value }, value)));
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
  }

  // refer sets the reference image: a File, or a stored file's reference.
  refer(image) {
    this.picker.value = "";
    if (image instanceof File && isHEIC(image)) return this.complain(new UnreadHEIC(image));
    this.problem.textContent = "";
    this.reference = image;
    this.showReference();
  }

  showReference() {
    if (this.shown) URL.revokeObjectURL(this.shown);
    this.shown = undefined;
    this.referenceBox.hidden = !this.takesReference;
    if (!this.reference) {
      this.referenceBox.replaceChildren(button("image", "Reference image", () => this.picker.click(), { title: this.takesReference?.description }));
      return;
    }
    const local = this.reference instanceof File, image = this.reference;
    const sign = icon("image");
    if (local) this.shown = URL.createObjectURL(image);
    else urlOf(image).then(url => url && sign.replaceWith(make("img", { src: url, alt: "The reference image" })));
    this.referenceBox.replaceChildren(
      make("span", { class: "chosen" },
        local ? make("img", { src: this.shown, alt: "The reference image" }) : sign,
        make("span", { class: "file-name" }, local ? this.reference.name : this.reference.filename),
        signButton("close", "Remove the reference image", () => {
          this.refer(undefined);
          this.referenceBox.querySelector("button").focus();
        })));
  }

  // fields returns the form's fields in the model's order. It throws Missing for
  // what the service would refuse.
  fields(source) {
    this.problem.textContent = "";
    const prompt = this.prompt.value.trim(), model = this.chosen;
    const reference = this.takesReference ? this.reference : undefined;
    const seed = this.seed.value.trim();
    if (seed && !(/^\d{1,10}$/.test(seed) && +seed <= greatestSeed)) throw new Missing(`A seed is a whole number from 0 to ${greatestSeed}.`, this.seed);
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
      const needs = model.only_with?.[field.name];
      if (needs && !values[needs]) continue;
      sent.push([field.name, value instanceof File || typeof value === "string" ? value : value.id]);
    }
    return sent;
  }

  complain(missing) {
    this.problem.textContent = missing.message;
    // On a phone, the end of the form is one screen below the file chooser.
    this.problem.scrollIntoView({ block: "nearest" });
    missing.control?.focus();
  }
}

export const drawSeed = () => String(crypto.getRandomValues(new Uint32Array(1))[0]);
