// Shows small pictures of runs and jobs.

import { soundOnly } from "./compare.js";
import { icon, make } from "./dom.js";
import { media } from "./service.js";
import { depict } from "./stored.js";

const pictures = new Map(); // promises of object URLs, by path

function fetched(path) {
  if (!pictures.has(path)) {
    pictures.set(path, media("GET", path).then(async answer => URL.createObjectURL(await answer.blob())).catch(failure => {
      if (failure.status !== 404) pictures.delete(path); // the picture may exist the next time
      return undefined;
    }));
  }
  return pictures.get(path);
}

// still shows a local picture, or the first frame of a local video.
function still(run, url) {
  const shown = run.kind === "image" ? make("img", { src: url, alt: "" })
    : make("video", { src: `${url}#t=0.1`, preload: "metadata", playsinline: true, tabindex: -1, "aria-hidden": "true" });
  if (run.kind !== "image") {
    shown.muted = true;
    soundOnly(shown);
  }
  shown.addEventListener("error", async () => {
    const picture = await inputOf(run);
    shown.replaceWith(picture ? make("img", { src: picture, alt: "" }) : icon(run.mode?.sign || "film"));
  }, { once: true });
  return shown;
}

// inputOf resolves to the service's picture of a run's input.
export async function inputOf(run) {
  return await depict(run.source?.value) || (run.id && run.phase === "done" ? fetched(`/v1/jobs/${run.id}/thumbnail?of=input`) : undefined);
}

export async function pictureOf(run) {
  const url = run.url || run.source?.url;
  if (url) return still(run, url);
  return run.job && jobPicture(run.job);
}

export const posterOf = run => run.kind === "video" && run.id ? fetched(`/v1/jobs/${run.id}/thumbnail?size=poster`) : Promise.resolve();

// jobPicture resolves to a picture of a completed job's result or input.
export async function jobPicture(job, of = "result") {
  if (job.status !== "completed") return undefined;
  const url = await fetched(`/v1/jobs/${job.job_id}/thumbnail${of === "input" ? "?of=input" : ""}`);
  return url && make("img", { src: url, alt: "" });
}
