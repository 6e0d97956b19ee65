// Asks the service about the engine: which fields have an effect, how it understands a prompt, and which looks
// it knows. Older services cannot answer.

import { media } from "./service.js";

const once = path => {
  let asked;
  return () => asked ??= media("GET", path).then(answer => answer.json()).catch(failure => {
    if (failure.status !== 404 && failure.status !== 405) asked = undefined; // the next call may succeed
    return undefined;
  });
};

const facts = once("/v1/engine");

export const looks = once("/v1/looks");

export async function factsOf(model) {
  const reported = await facts();
  const found = reported?.models.find(one => one.id === model.id);
  return { engine: reported?.engine, ignores: found?.ignores || {}, same_as: found?.same_as || [], unsupported: found?.unsupported };
}

let silent; // whether the service lacks this call

// understand resolves to {engine, understood, ignored, notice, planned}, or to undefined if the service does not have
// the call. shape is the input's shape, and may be undefined.
export async function understand(model, prompt, reference, shape, resolution, signal) {
  if (silent) return undefined;
  try {
    return await (await media("POST", "/v1/understand", { body: { model: model.id, prompt, reference_image: reference, resolution, ...shape }, signal, patience: 10_000 })).json();
  } catch (failure) {
    silent = failure.status === 404 || failure.status === 405;
    return undefined;
  }
}

// pictureURL converts a data URL to a blob URL, because the page's security policy forbids data URLs.
export function pictureURL(data) {
  const [head, body] = data.split(",");
  return URL.createObjectURL(new Blob([Uint8Array.from(atob(body), letter => letter.charCodeAt(0))], { type: head.slice(5).split(";")[0] }));
}
