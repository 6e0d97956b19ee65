// Computes what edits cost at the operator's prices. If there are no prices, nothing is shown.

import { media } from "./service.js";

const asked = new Map(); // promises of estimates, by model id and length

// money formats an amount. Amounts below 1 may have four decimals.
export const money = ({ amount, currency }) => new Intl.NumberFormat("en", { style: "currency", currency, maximumFractionDigits: amount < 1 ? 4 : 2 }).format(amount);

export const about = cost => cost ? `about ${money(cost)}` : "";

export const priceOf = model => model.price ? `${money(model.price)} per ${model.price.per}` : "";

// shapeOf resolves to the width and height of an image or a video, and to a video's length in seconds. It resolves to
// undefined if they are unknown.
export function shapeOf(url, image) {
  return new Promise(resolve => {
    const shown = document.createElement(image ? "img" : "video");
    shown.preload = "metadata";
    shown.addEventListener("load", () => resolve({ width: shown.naturalWidth, height: shown.naturalHeight }));
    shown.addEventListener("loadedmetadata", () => resolve({ width: shown.videoWidth, height: shown.videoHeight, seconds: Number.isFinite(shown.duration) ? shown.duration : undefined }));
    shown.addEventListener("error", () => resolve({}));
    shown.src = url;
  });
}

// planOf returns a description of the result's size and frame rate, or "" if they are unknown
// (docs/contract/media.md#models). With resolution "source", they are the input's.
export function planOf(model, resolution, { width, height } = {}) {
  const box = model.sizes[resolution];
  if (!box || !width || !height) return "";
  const even = (a, b) => Math.max(2, Math.floor((a + b) / (2 * b)) * 2);
  const [across, down] = height > width ? [Math.min(...box), Math.max(...box)] : box;
  let size = across * height > down * width ? [even(down * width, height), down] : [across, even(across * height, width)];
  if (resolution === "source" && size[0] >= width) size = [even(width, 1), even(height, 1)];
  return planned({ width: Math.min(size[0], across), height: Math.min(size[1], down), fps: resolution !== "source" && model.fps });
}

export const planned = ({ width, height, fps, seconds }) => `Result: ${width}x${height}${fps ? `, ${fps} frames per second` : ""}${seconds ? `, ${+seconds.toFixed(1)} seconds` : ""}.`;

// estimate resolves to {amount, currency}, or undefined if the cost is unknown. seconds is the
// input's length, if known.
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

// costOf resolves to the cost, as text, of editing each source with each model, with `times`
// results per edit. lengths holds the sources' lengths in seconds.
export async function costOf(models, lengths, times) {
  const priced = models.filter(model => model.price);
  if (!priced.length) return "";
  const all = await Promise.all(priced.flatMap(model => (lengths.length ? lengths : [undefined]).map(seconds => estimate(model, seconds))));
  if (all.every(Boolean)) return `Costs about ${money({ amount: all.reduce((sum, one) => sum + one.amount, 0) * times, currency: all[0].currency })}`;
  return priced.length === 1 ? `Costs ${priceOf(priced[0])}` : "";
}
