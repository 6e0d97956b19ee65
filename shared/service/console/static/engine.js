// What the service says of its engine: which fields it follows, what it would make of
// a prompt, and which looks it has. Older services say nothing, and nothing is shown.

import { media } from "./service.js";

const once = path => {
  let asked;
  return () => asked ??= media("GET", path).then(answer => answer.json()).catch(failure => {
    if (failure.status !== 404 && failure.status !== 405) asked = undefined; // it may be told the next time
    return undefined;
  });
};

const facts = once("/v1/engine");

// looks resolves to {engine, original, looks, changes, scenes}, undefined if none are told.
export const looks = once("/v1/looks");

// factsOf resolves to {engine, ignores, same_as} of a model.
export async function factsOf(model) {
  const told = await facts();
  const found = told?.models.find(one => one.id === model.id);
  return { engine: told?.engine, ignores: found?.ignores || {}, same_as: found?.same_as || [] };
}

let silent; // the service has no such call

// understand resolves to what would be made of a prompt, {engine, understood, ignored,
// notice}, undefined if that is not told.
export async function understand(model, prompt, reference, signal) {
  if (silent) return undefined;
  try {
    return await (await media("POST", "/v1/understand", { body: { model: model.id, prompt, reference_image: reference }, signal, patience: 10_000 })).json();
  } catch (failure) {
    silent = failure.status === 404 || failure.status === 405;
    return undefined;
  }
}

// pictureURL returns an object URL of a data URL, which the page's policy does not load.
export function pictureURL(data) {
  const [head, body] = data.split(",");
  return URL.createObjectURL(new Blob([Uint8Array.from(atob(body), letter => letter.charCodeAt(0))], { type: head.slice(5).split(";")[0] }));
}
