// Texts about models: what each kind is for, and sample prompts.

import { make } from "./dom.js";

// kinds is in the order of the menus. ask is the placeholder of the prompt, run the label of the button, and doing
// the label while a run is in progress.
export const kinds = {
  "edit": { title: "Edit", ask: "Describe the edit: “watercolor painting”, “blur the background”", run: "Run edit", doing: "Editing", one: "edit", examples: ["watercolor painting", "blur the background", "slow motion", "crop to square", "first 3 seconds", "black and white"] },
  "restyle": { title: "Restyle", ask: "Describe the look: “film noir”", run: "Run edit", doing: "Restyling", one: "edit", examples: ["film noir", "anime", "comic book", "oil painting", "pencil sketch", "old photograph"] },
  "try-on": { title: "Try on a garment", ask: "Describe the garment, and add its picture", run: "Run edit", doing: "Dressing", one: "edit", examples: ["wearing this jacket", "wearing this shirt"] },
  "clip": { title: "Edit, previous generation", ask: "Describe the edit: “golden hour”", run: "Run edit", doing: "Editing", one: "edit", examples: ["golden hour", "snowy winter", "film noir", "a watercolor painting"] },
  "text-to-video": { title: "Make a video from text", ask: "Describe the scene: “aurora over the mountains”", run: "Make video", doing: "Making", one: "video", examples: ["aurora over the mountains", "a sailing boat at sunset", "city lights in the rain", "snow falling on a forest"] },
  "image-to-video": { title: "Make a video from an image", ask: "Describe what should happen: “she smiles and waves”", run: "Make video", doing: "Making", one: "video", examples: ["the camera moves slowly closer", "she smiles and waves"] },
  "image": { title: "Edit an image", ask: "Describe the edit: “pencil sketch”, “remove the background”", run: "Run edit", doing: "Editing", one: "edit", examples: ["pencil sketch", "remove the background", "crop to square", "black and white", "watercolor painting", "golden hour"] },
};

const unknown = { title: "Other models", ask: "Describe what you want", run: "Run", doing: "Working", one: "run", examples: [] };

export const kindOf = model => kinds[model?.kind] || unknown;

export const titleOf = model => model.title || model.id;

export const examplesOf = model => model.examples?.length ? model.examples : kindOf(model).examples;

// options returns the options of a menu, grouped by kind.
export function options(models) {
  const groups = Map.groupBy ? Map.groupBy(models, model => model.kind) : group(models);
  return [...groups].map(([, group]) => make("optgroup", { label: kindOf(group[0]).title },
    group.map(model => make("option", { value: model.id }, model.title ? `${model.title} (${model.id})` : model.id))));
}

function group(models) {
  const groups = new Map();
  for (const model of models) groups.set(model.kind, [...groups.get(model.kind) || [], model]);
  return groups;
}

export const dataOf = model => model.fields.find(field => field.name === "data");

export const modes = [
  { id: "video", title: "Video", sign: "film", takes: model => dataOf(model)?.type === "video" },
  { id: "image", title: "Image", sign: "image", takes: model => dataOf(model)?.type === "image" },
  { id: "words", title: "Text to video", sign: "words", takes: model => !dataOf(model) },
];

export const modeOf = model => modes.find(mode => mode.takes(model));
