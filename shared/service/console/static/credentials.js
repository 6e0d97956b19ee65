// The dialog that shows and verifies the Content Credentials of a result, a stored file, or a dropped file.

import { button, icon, make, say } from "./dom.js";
import { kindOf } from "./result.js";
import { media } from "./service.js";
import { store } from "./upload.js";

// verdicts has the icon, title and meaning of each state that a report can have.
const verdicts = {
  trusted: ["check", "Unchanged, and the signer is known", "Neither the picture nor the sound has changed since it was signed, and an authority that this service trusts has confirmed the signer."],
  own: ["check", "Unchanged, and signed by this service", "Neither the picture nor the sound has changed since this service signed it with its own key. No authority has confirmed the service's name."],
  valid: ["info", "Unchanged, but the signer is not verified", "Neither the picture nor the sound has changed since it was signed. The signer's name may be false, because anyone can create such a certificate."],
  changed: ["alert", "Changed since it was signed", "Its bytes differ from the signed bytes. Do not trust its claims."],
  invalid: ["alert", "Not trustworthy", "Its credentials are damaged, expired or forged. Do not trust its claims."],
  none: ["info", "No Content Credentials", "The file does not state its origin. That proves nothing, because re-encoding, messengers and photos of a screen remove the credentials."],
  unreadable: ["alert", "The file cannot be read", ""],
};

const opened = "c2pa.opened";

// timeOf formats the time that a signer states. It may be an arbitrary string.
function timeOf(when) {
  const time = new Date(when || NaN);
  return isNaN(time) ? when : time.toLocaleString();
}

const isChanged = problems => /Hash\.mismatch/.test(problems?.[0]);

function rowsOf({ signed_by: by, common_name: name, generator, actions, inputs }) {
  const rows = actions.filter(({ action }) => action !== opened || actions.length === 1).map(({ action, source_type: type, model, agent, when }) => [
    "How", [kindOf(type) || action.replace("c2pa.", ""), model && `model ${model}`, agent && `engine ${agent}`, timeOf(when)].filter(Boolean).join(" · "),
  ]);
  if (by) rows.push(["Signed by", name && name !== by ? `${by} (${name})` : by]);
  if (generator) rows.push(["Written by", generator]);
  for (const { relationship, format, sha256, problems, record } of inputs || []) {
    const what = relationship === "parentOf" ? "Edited from" : "Made with";
    const found = problems && `Its own credentials were invalid: it was ${isChanged(problems) ? "changed after it was signed" : "not trustworthy"}. It claims:`;
    rows.push([what, [format, found && make("span", { class: "problem" }, found), record ? list(rowsOf(record)) : "without its own credentials", sha256 && make("code", {}, `SHA-256 ${sha256}`)]]);
  }
  return rows;
}

const list = rows => make("dl", { class: "facts-list" }, rows.map(([name, what]) => [make("dt", {}, name), make("dd", {}, [what].flat().filter(Boolean).map(part => part instanceof Node ? part : make("span", {}, part)))]));

function reportOf(name, report) {
  const changed = report.state === "invalid" && isChanged(report.problems);
  const state = changed ? "changed" : report.own ? "own" : report.state, [sign, words, meaning] = verdicts[state];
  say(`${name}: ${words}`);
  const listed = report.problems?.length > 0 && make("ul", { class: "note problems" }, report.problems.slice(0, 5).map(problem => make("li", {}, problem)));
  const rows = rowsOf(report);
  return [
    make("div", { class: `verdict ${state}` }, icon(sign), make("div", {}, make("strong", {}, words), meaning && make("p", {}, meaning), listed)),
    rows.length > 0 && make("p", { class: "note" }, report.state === "invalid" ? "It claims:" : "It says:"),
    rows.length > 0 && list(rows),
  ].filter(Boolean);
}

// verify opens the dialog for the file at a path of the service. name is the file's display name. The user may then
// drop another file to verify.
export function verify(name, path) {
  const place = make("div", { class: "report" }), title = make("h2", { id: "dialog-title" });
  let working = new AbortController();
  const show = async (what, work) => {
    working.abort();
    const { signal } = working = new AbortController(), words = make("p", { class: "note", role: "status" }, "Verifying …");
    title.textContent = what;
    place.replaceChildren(words);
    try {
      const report = await work(signal, text => { words.textContent = text; });
      if (!signal.aborted) place.replaceChildren(...reportOf(what, report));
    } catch (refusal) {
      if (!signal.aborted) place.replaceChildren(make("p", { class: "problem", role: "alert" }, refusal.message));
    }
  };
  const read = async (from, signal) => (await media("GET", `${from}/credentials`, { signal })).json();
  const others = make("p", { class: "note", role: "status" });
  // A dropped file is stored only until it has been verified.
  const take = ([file, ...rest]) => file && show(file.name, async (signal, report) => {
    others.textContent = rest.length ? `Only the first of ${rest.length + 1} files is verified. Drop the other files one by one.` : "";
    const watch = { signal, progress: share => report(share < 1 ? `Uploading ${Math.floor(share * 100)} %` : "Verifying …"), reading: share => report(`Reading ${Math.floor(share * 100)} %`) };
    const { id } = await store(file, watch, 3600);
    try {
      return await read(`/v1/uploads/${id}`, signal);
    } finally {
      media("DELETE", `/v1/files/${id}`).catch(() => {}); // if this fails, the file expires anyway
    }
  });
  const picker = make("input", { type: "file", accept: "image/*,video/*", class: "unseen", tabindex: -1, "aria-hidden": "true", on: { change: () => {
    take(picker.files);
    picker.value = "";
  } } });
  const dialog = make("dialog", { class: "dialog verify", "aria-labelledby": "dialog-title" }, title, place, others, picker,
    make("p", { class: "drop note" }, "Drop an image or a video here to verify it. It is stored only during the verification."),
    make("div", { class: "row end" }, button("files", "Choose a file", () => picker.click(), { autofocus: !path }), button("", "Close", () => dialog.close(), { class: "primary", autofocus: Boolean(path) })));
  const over = is => event => {
    event.preventDefault();
    event.stopPropagation(); // without this, the page below would also store the dropped file
    dialog.classList.toggle("over", is);
    if (event.type === "drop") take(event.dataTransfer.files);
  };
  for (const [event, is] of [["dragover", true], ["dragleave", false], ["drop", false]]) dialog.addEventListener(event, over(is));
  dialog.addEventListener("close", () => {
    working.abort();
    dialog.remove();
  });
  document.body.append(dialog);
  dialog.showModal();
  if (path) show(name, signal => read(path, signal));
  else title.textContent = "Who made it?";
}
