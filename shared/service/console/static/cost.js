// The cost of edits by the operator's prices. If no prices are set, nothing is shown.

import { media } from "./service.js";

const asked = new Map(); // promises of estimates, by model and length

// money returns an amount of a currency in words. Small ones have more digits.
export const money = ({ amount, currency }) => new Intl.NumberFormat("en", { style: "currency", currency, maximumFractionDigits: amount < 1 ? 4 : 2 }).format(amount);

// about returns an estimate in words, or "".
export const about = cost => cost ? `about ${money(cost)}` : "";

// priceOf returns a model's price in words, or "".
export const priceOf = model => model.price ? `${money(model.price)} per ${model.price.per}` : "";

// lengthOf resolves to the seconds of a video, undefined if unknown.
export function lengthOf(url) {
  return new Promise(resolve => {
    const video = document.createElement("video");
    video.preload = "metadata";
    video.addEventListener("loadedmetadata", () => resolve(Number.isFinite(video.duration) ? video.duration : undefined));
    video.addEventListener("error", () => resolve(undefined));
    video.src = url;
  });
}

// estimate resolves to the service's estimate for an edit by a model, {amount, currency}. seconds
// is the input's length. If it is undefined, the estimate may be undefined too.
function estimate(model, seconds) {
  const name = `${model.id} ${seconds}`;
  if (!asked.has(name)) {
    asked.set(name, media("POST", "/v1/understand", { body: { model: model.id, ...(seconds ? { seconds } : {}) }, patience: 10_000 }).then(async answer => (await answer.json()).estimated_cost).catch(() => {
      asked.delete(name);
      return undefined;
    }));
  }
  return asked.get(name);
}

// costOf resolves to the cost in words of editing sources by models, times times each. lengths are
// the seconds of the sources.
export async function costOf(models, lengths, times) {
  const priced = models.filter(model => model.price);
  if (!priced.length) return "";
  const all = await Promise.all(priced.flatMap(model => (lengths.length ? lengths : [undefined]).map(seconds => estimate(model, seconds))));
  if (all.every(Boolean)) return `Costs about ${money({ amount: all.reduce((sum, one) => sum + one.amount, 0) * times, currency: all[0].currency })}`;
  return priced.length === 1 ? `Costs ${priceOf(priced[0])}` : "";
}
