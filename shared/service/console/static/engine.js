// The engine's abilities as reported by the service: which fields it follows, its understanding of
// a prompt, and its looks. For older services, which do not report them, nothing is shown.

import { media } from "./service.js";

const once = path => {
  let asked;
  return () => asked ??= media("GET", path).then(answer => answer.json()).catch(failure => {
    if (failure.status !== 404 && failure.status !== 405) asked = undefined; // the next call may succeed
    return undefined;
  });
};

const facts = once("/v1/engine");

// looks resolves to {engine, original, looks, changes, scenes}, or undefined.
export const looks = once("/v1/looks");

// factsOf resolves to {engine, ignores, same_as} of a model.
export async function factsOf(model) {
  const told = await facts();
  const found = told?.models.find(one => one.id === model.id);
  return { engine: told?.engine, ignores: found?.ignores || {}, same_as: found?.same_as || [] };
}

let silent; // the service has no such call

// understand resolves to the engine's understanding of a prompt, {engine, understood, ignored,
// notice}, or undefined.
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
