// Small pictures of runs and jobs.

import { make } from "./dom.js";
import { media } from "./service.js";

const pictures = new Map(); // promises of object URLs, by path

// fetched resolves to an object URL of a picture of the service, undefined if there is
// none.
function fetched(path) {
  if (!pictures.has(path)) {
    pictures.set(path, media("GET", path).then(async answer => URL.createObjectURL(await answer.blob())).catch(failure => {
      if (failure.status !== 404) pictures.delete(path); // it may be there the next time
      return undefined;
    }));
  }
  return pictures.get(path);
}

// still shows the first picture of what a browser has.
function still(kind, url) {
  if (kind === "image") return make("img", { src: url, alt: "" });
  const video = make("video", { src: `${url}#t=0.1`, preload: "metadata", playsinline: true, tabindex: -1, "aria-hidden": "true" });
  video.muted = true;
  return video;
}

// pictureOf resolves to the element that shows a run, undefined if there is none.
export async function pictureOf(run) {
  const url = run.url || run.source?.url;
  if (url) return still(run.kind, url);
  return run.job && jobPicture(run.job);
}

// jobPicture resolves to the element that shows a job's result, or what it is made of.
export async function jobPicture(job, which = job.thumbnails?.result ? "result" : "data") {
  const path = job.thumbnails?.[which];
  const url = path && await fetched(path);
  return url && make("img", { src: url, alt: "" });
}
