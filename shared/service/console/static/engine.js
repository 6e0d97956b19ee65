// The engine's abilities: the fields it follows, its understanding of a prompt, and its looks.
// Older services do not report them.

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

// understand resolves to {engine, understood, ignored, notice, planned}, or undefined. The input's
// shape may be undefined.
export async function understand(model, prompt, reference, shape, resolution, signal) {
  if (silent) return undefined;
  try {
    return await (await media("POST", "/v1/understand", { body: { model: model.id, prompt, reference_image: reference, resolution, ...shape }, signal, patience: 10_000 })).json();
  } catch (failure) {
    silent = failure.status === 404 || failure.status === 405;
    return undefined;
  }
}

// The page's policy does not load data URLs.
export function pictureURL(data) {
  const [head, body] = data.split(",");
  return URL.createObjectURL(new Blob([Uint8Array.from(atob(body), letter => letter.charCodeAt(0))], { type: head.slice(5).split(";")[0] }));
}
