// Shows a run: its progress, its error, or its result next to its input.

import { ago, button, copy, icon, make, say, signButton, toast } from "./dom.js";
import { compare, fitTo, view } from "./compare.js";
import { about } from "./cost.js";
import { fetchCommand, javascriptProgram, pythonProgram, submitCommand } from "./command.js";
import { titleOf } from "./models.js";
import { media, settings } from "./service.js";
import { inputOf, posterOf } from "./pictures.js";
import { deleteResult, shareResult } from "./sharing.js";

export function duration(seconds) {
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  return seconds < 60 ? `${Math.round(seconds)} s` : `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
}

const took = job => duration((new Date(job.completed_at) - new Date(job.created_at)) / 1000);

// fileName returns a name for the result, made of the source's name and the prompt.
export function fileName(run) {
  const ending = run.blob?.type.startsWith("image/") ?? run.kind === "image" ? "png" : "mp4";
  const source = run.fields.find(([name]) => name === "data")?.[1]?.name?.replace(/\.[^.]*$/, "");
  const name = [source, run.prompt].filter(Boolean).join(" ").normalize("NFC").replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-+|-+$/g, "").slice(0, 80).replace(/-+$/, "");
  return `${name || run.id}.${ending}`;
}

// previewEvery is the pause between requests for previews, in milliseconds. missed is the pause after a request that
// found none, because some engines make no previews.
const previewEvery = 2000, missed = 6000;

// previewOf returns a picture element. It shows the engine's previews, if any, then the poster while the result loads.
function previewOf(run) {
  const picture = make("img", { class: "preview", alt: "", hidden: true });
  let next = Date.now() + previewEvery;
  return { picture, look: async () => {
    if (run.phase === "fetching" && run.fetches) {
      const poster = await posterOf(run);
      if (poster && picture.src !== poster) Object.assign(picture, { src: poster, hidden: false });
      return;
    }
    if (run.phase !== "editing" || !run.id || Date.now() < next) return;
    next = Infinity;
    const blob = await media("GET", `/v1/jobs/${run.id}/preview`).then(answer => answer.blob()).catch(() => undefined);
    const url = blob && URL.createObjectURL(blob);
    next = Date.now() + (url ? previewEvery : missed);
    if (!url) return;
    URL.revokeObjectURL(picture.src);
    picture.src = url;
    picture.hidden = false;
  } };
}

function queueOf({ phase, job }) {
  if (phase !== "waiting" || !job?.queue_position) return "";
  const at = job.queue_position === 1 ? "next in the queue" : `${job.queue_position - 1} ahead in the queue`;
  const latest = job.estimated_start_at && (new Date(job.estimated_start_at.latest) - Date.now()) / 1000;
  return latest > 1.5 ? `${at} · starts within ${duration(Math.ceil(latest)).replace(".0", "")}` : at;
}

// showProgress shows a run's progress, and returns a function that updates it. url, a picture of the source, is
// optional.
export function showProgress(stage, run, url) {
  const words = make("span", { class: "phase" }), share = make("span", { class: "share" }), bar = make("progress", { max: 1, "aria-label": "Progress" });
  const stop = button("close", "Cancel", async () => {
    stop.disabled = true;
    try {
      await run.cancel();
    } catch (refusal) {
      stop.disabled = false;
      toast(refusal.message);
    }
  }, { class: "cancel" });
  const { picture, look } = previewOf(run);
  const back = url ? view(run.sourceKind, url, `The original ${run.sourceKind}`, () => inputOf(run)) : make("div", { class: "blank" });
  if (url) fitTo(stage, back);
  stage.dataset.state = "working";
  stage.replaceChildren(back, picture, make("div", { class: "sheen" }), make("div", { class: "working" }, make("div", { class: "row" }, words, share, stop), bar));
  let said = "";
  return () => {
    const left = run.left(), part = run.share;
    words.textContent = run.words();
    const still = left === undefined ? "" : `${left < 1.5 ? "a moment" : `about ${duration(Math.ceil(left)).replace(".0", "")}`} left`;
    share.textContent = [part === undefined || run.phase === "waiting" ? "" : `${Math.floor(part * 100)} %`, queueOf(run), still, about(run.job?.estimated_cost)].filter(Boolean).join(" · ");
    if (part === undefined || run.phase === "waiting") bar.removeAttribute("value");
    else bar.value = part;
    const tenth = `${run.words()} ${part === undefined ? "" : Math.floor(part * 10) * 10 + " %"}`;
    if (tenth !== said) say(said = tenth);
    look();
  };
}

export function showFailure(stage, run, ...buttons) {
  const cancelled = run.phase === "cancelled", { title, why, again } = run.problem || {};
  stage.dataset.state = cancelled ? "cancelled" : "failed";
  stage.style.removeProperty("--ratio");
  stage.replaceChildren(make("div", { class: "empty", role: cancelled ? "status" : "alert" },
    icon(cancelled ? "close" : "alert"), make("h2", {}, cancelled ? "Cancelled" : title),
    make("p", {}, cancelled ? "Nothing was lost. You can run the edit again at any time." : why),
    make("div", { class: "row" },
      (cancelled ? run.fields.every(([, value]) => typeof value === "string" || value instanceof File) : again) && button("again", cancelled ? "Run it again" : "Try again", () => run.again(), { class: "primary again" }),
      buttons)));
}

// Compare with the original if this browser has it and the result differs from it.
export async function showResult(stage, run) {
  const before = run.unchanged ? undefined : await run.original();
  const { box, bar } = compare(run.kind, run.sourceKind === run.kind ? before : undefined, run.url, stage, () => inputOf(run));
  const player = box.querySelector("video:last-of-type");
  if (player) posterOf(run).then(poster => poster && (player.poster = poster));
  stage.dataset.state = "done";
  stage.replaceChildren(box, ...(bar ? [bar] : []));
}

// IPTC's terms for how a picture was made.
const made = { trainedAlgorithmicMedia: "made by AI", compositeWithTrainedAlgorithmicMedia: "edited by AI", algorithmicMedia: "made by software", algorithmicallyEnhanced: "edited by software" };

// kindOf translates the term. Signers may have made up other terms, which are shown unchanged.
export const kindOf = type => Object.hasOwn(made, type) ? made[type] : type;

function credentialsOf({ job_id: id, result }) {
  const signed = result?.content_credentials;
  if (!signed) return undefined;
  const check = make("button", { type: "button", class: "link", on: { click: () => verify("This result", `/v1/jobs/${id}`) } }, "Verify");
  const how = settings.docs_url && make("a", { href: `${settings.docs_url}#get_job_credentials` }, "How");
  return make("p", { class: "note credentials" }, `Content Credentials: ${kindOf(signed.source_type)}, signed by ${signed.signed_by}. `, check, " ", how);
}

// verify opens the dialog that verifies a file. path is the file's path on the service.
export const verify = (name, path) => import("./credentials.js").then(module => module.verify(name, path), () => toast("The verifier could not be loaded. Reload the page."));

export function notes(run) {
  const { job } = run;
  const engine = job.engine && make("span", { class: "badge", title: "The engine that made this result" }, `${job.engine} engine`);
  const followed = job.understood?.map(words => make("li", {}, icon("check"), words));
  return make("div", { class: "made" },
    run.unchanged && make("p", { class: "unchanged" }, icon("alert"), make("strong", {}, "Unchanged")),
    make("p", {}, make("strong", {}, run.model ? titleOf(run.model) : job.model), ` · ${["seed " + job.seed, took(job), ago(job.completed_at), about(job.estimated_cost)].filter(Boolean).join(" · ")} `, engine),
    followed?.length > 0 && make("ul", { class: "followed", "aria-label": "Parts of the prompt that were followed" }, followed),
    job.notice && make("p", { class: "remark", role: "note" }, icon("info"), make("span", {}, job.notice)),
    credentialsOf(job),
    job.enhanced_prompt && make("p", { class: "note" }, `Enhanced prompt: ${job.enhanced_prompt}`));
}

// actions returns the buttons for a run. doing holds the page's functions again(run), settings(run), edit(run), and
// gone(run), which is called after a deletion; doing.stage is the element for full screen.
export function actions(run, doing) {
  const name = fileName(run);
  return [
    make("a", { class: `button download ${run.unchanged ? "" : "primary"}`, href: run.url, download: name, title: name }, icon("download"), make("span", {}, "Download")),
    doing.again && !run.unchanged && button("again", "Another seed", () => doing.again(run), { class: "reseed", title: "Run again with another seed" }),
    doing.edit && button("edit", "Edit this result", () => doing.edit(run), { class: "feed", title: "Use it as the file for the next edit" }),
    doing.settings && button("settings", "Use these settings", () => doing.settings(run), { class: "reuse", title: "Fill in the form with the settings of this edit" }),
    doing.stage?.requestFullscreen && signButton("full", "Full screen", () => document.fullscreenElement ? document.exitFullscreen() : doing.stage.requestFullscreen().catch(() => toast("The browser does not allow full screen for this page."))),
    signButton("share", "Share this result", () => shareResult(run)),
    doing.gone && signButton("bin", "Delete this edit", () => deleteResult(run, doing.gone), { class: "sign bad" }),
  ].filter(Boolean);
}

const languageName = "cutroom-language", languages = ["curl", "Python", "JavaScript"];

const code = (title, text) => make("figure", { class: "command" },
  make("figcaption", {}, title, button("copy", "Copy", () => copy(text, "The text was"), { "aria-label": `Copy: ${title}` })),
  make("pre", { tabindex: 0, "aria-label": title }, make("code", {}, text)));

// terminal returns an element with commands and programs that repeat the run, and the job's record.
export function terminal(run) {
  const record = run.job && make("details", {}, make("summary", {}, "The record as JSON"), code("The job's record", JSON.stringify(run.job, null, 2)));
  if (!run.model) return record;
  const fields = run.fields.filter(([field]) => field !== "seed"), name = fileName(run);
  if (run.model.fields.some(field => field.name === "seed")) fields.push(["seed", String(run.seed)]);
  const texts = {
    curl: () => [code("Submit this edit again", submitCommand(run.model, fields)), code("Fetch this result", fetchCommand(run.id, name))],
    Python: () => [code("The same edit in Python", pythonProgram(run.model, fields, name))],
    JavaScript: () => [code("The same edit in JavaScript", javascriptProgram(run.model, fields, name))],
  };
  const place = make("div", {}), chosen = languages.includes(localStorage.getItem(languageName)) ? localStorage.getItem(languageName) : languages[0];
  const show = language => {
    localStorage.setItem(languageName, language);
    place.replaceChildren(...texts[language]());
  };
  const choice = make("div", { class: "choices languages", role: "radiogroup", "aria-label": "Language" }, languages.map(language => {
    const input = make("input", { type: "radio", name: `language-${run.id}`, value: language, on: { change: () => show(language) } });
    input.checked = language === chosen;
    return make("label", {}, input, make("span", {}, language));
  }));
  place.replaceChildren(...texts[chosen]());
  return make("div", { class: "by-code" }, make("details", {}, make("summary", {}, "The same from a terminal or a program"), choice, place), record);
}
