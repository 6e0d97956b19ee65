// The dialogs in which a result is shared or deleted.

import { button, confirm, copy, make, signButton, toast } from "./dom.js";
import { purge, share } from "./jobs.js";
import { publish } from "./news.js";

const ends = [[3600, "in an hour"], [86400, "in a day"], ["", "with the result"]];

export function shareResult(run) {
  const end = make("select", { id: "share-end" }, ends.map(([seconds, words]) => make("option", { value: seconds }, words)));
  const refused = make("p", { class: "problem", role: "alert" });
  const enter = make("button", { class: "primary" }, "Create the link");
  const place = make("div", {});
  const dialog = make("dialog", { class: "dialog", "aria-labelledby": "dialog-title" },
    make("h2", { id: "dialog-title" }, "Share this result"),
    make("p", {}, "Anyone with the link can see the result, but neither the prompt nor the original. To revoke the link before it expires, delete the result."),
    make("form", { class: "new-key", on: { submit: async event => {
      event.preventDefault();
      enter.disabled = true;
      refused.textContent = "";
      try {
        const { url, expires_at: until } = await share(run.id, +end.value);
        const shown = make("input", { id: "share-link", readonly: true, value: url, "aria-label": "The link", on: { focus: () => shown.select() } });
        place.replaceChildren(make("div", { class: "joined" }, shown, signButton("copy", "Copy the link", () => copy(url, "The link was"), { id: "copy-link" })),
          make("p", { class: "note" }, `It expires on ${new Date(until).toLocaleString()}.`));
        place.querySelector("#copy-link").focus();
      } catch (refusal) {
        refused.textContent = refusal.message;
      }
      enter.disabled = false;
    } } },
      make("div", { class: "field" }, make("label", { for: "share-end" }, "Expires"), end), place, refused,
      make("div", { class: "row end" }, button("", "Close", () => dialog.close()), enter)));
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

// deleteResult asks the user, deletes the result, and then calls gone.
export async function deleteResult(run, gone) {
  if (!await confirm("Delete this edit?", "Its result and record are deleted for everyone in the account, and links to it stop working. This cannot be undone.", "Delete")) return;
  try {
    await purge(run.id);
  } catch (refusal) {
    if (refusal.status !== 404) return toast(refusal.message);
  }
  publish("jobs");
  toast("The edit was deleted.");
  gone(run);
}
