// The dialog in which the user chooses one of the account's stored files.

import { button, bytes, icon, make, since } from "./dom.js";
import { media } from "./service.js";
import { smallOf, urlOf } from "./stored.js";

const pageSize = 100, firstPages = 5; // how many files a page has, and how many pages are searched at first

// chooseStored resolves to the stored file that the user has chosen, or to undefined. kind is "video" or "image".
export function chooseStored(kind) {
  return new Promise(resolve => {
    const grid = make("ul", { class: "library-grid", "aria-label": `Stored ${kind}s` });
    const problem = make("p", { class: "problem", role: "alert" }), none = make("p", { class: "note", role: "status" }, "Looking …");
    let chosen, cursor;
    const item = file => {
      const picture = make("span", { class: "thumb" }, icon(kind === "image" ? "image" : "film"));
      smallOf(file).then(url => url || (kind === "image" && urlOf(file))).then(url => url && picture.replaceChildren(make("img", { src: url, alt: "" })));
      return make("li", {}, make("button", { type: "button", title: file.filename, on: { click: () => {
        chosen = file;
        dialog.close();
      } } }, picture, make("span", { class: "file-name" }, file.filename), make("small", {}, bytes(file.size_bytes), " · ", since(file.created_at))));
    };
    const read = async () => {
      more.disabled = true;
      problem.textContent = "";
      const before = grid.children.length;
      try {
        for (let pages = firstPages; pages > 0 && grid.children.length < before + pageSize / 4; pages--) {
          const query = new URLSearchParams({ limit: pageSize, ...(cursor ? { cursor } : {}) });
          const page = await (await media("GET", `/v1/files?${query}`)).json();
          grid.append(...page.files.filter(file => file.mime_type.startsWith(`${kind}/`)).map(item));
          cursor = page.next_cursor;
          if (!cursor) break;
        }
        none.textContent = grid.children.length ? "" : `No ${kind} is stored${cursor ? " among the latest files" : ". Files that you upload on the Files page appear here"}.`;
      } catch (refusal) {
        none.textContent = "";
        problem.textContent = refusal.message;
      }
      more.hidden = !cursor;
      more.disabled = false;
      grid.children[before]?.querySelector("button").focus();
    };
    const more = button("add", "More", read, { hidden: true });
    const dialog = make("dialog", { class: "dialog library", "aria-labelledby": "dialog-title" },
      make("h2", { id: "dialog-title" }, `Choose a stored ${kind}`), grid, none, problem,
      make("div", { class: "row end" }, more, button("", "Close", () => dialog.close())));
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(chosen);
    });
    document.body.append(dialog);
    dialog.showModal();
    read();
  });
}
