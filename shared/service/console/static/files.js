// The page Files: what the account has stored.

import { ago, button, bytes, confirm, icon, make, say, signButton, toast } from "./dom.js";
import { useStored } from "./edit.js";
import { media } from "./service.js";
import { forgetURL, urlOf } from "./stored.js";
import { store } from "./upload.js";

const pageSize = 24;

export const filesPage = { id: "files", title: "Files", sign: "files", open: section => new Files(section) };

class Files {
  constructor(section) {
    this.cursor = null;
    this.grid = make("ul", { class: "grid" });
    this.problem = make("p", { class: "notice", role: "alert", hidden: true });
    this.none = make("div", { class: "blankslate", hidden: true }, icon("files"), make("h2", {}, "No files yet"), make("p", {}, "Store a file once and use it in any edit, by its id."));
    this.more = button("add", "More files", () => this.read(), { hidden: true });
    this.picker = make("input", { type: "file", class: "unseen", tabindex: -1, "aria-hidden": "true", on: { change: () => {
      if (this.picker.files[0]) this.upload(this.picker.files[0]);
      this.picker.value = "";
    } } });
    this.bar = make("progress", { max: 1, "aria-label": "Upload", hidden: true });
    this.add = button("add", "Upload a file", () => this.picker.click(), { class: "primary", id: "upload" });
    section.append(make("div", { class: "page-tools" }, make("p", { class: "note" }, "Files expire by themselves, a day after their upload unless it says otherwise."), this.add), this.picker, this.bar, this.problem, this.grid, this.none, make("div", { class: "row end" }, this.more));
  }

  shown() { this.again(); }

  again() {
    this.cursor = null;
    return this.read();
  }

  // read adds the next page to the list, or starts it.
  async read() {
    const first = this.cursor === null;
    try {
      const query = new URLSearchParams({ limit: pageSize, ...(first ? {} : { cursor: this.cursor }) });
      const { files, next_cursor: next } = await (await media("GET", `/v1/files?${query}`)).json();
      this.problem.hidden = true;
      const cards = files.map(file => this.card(file));
      if (first) this.grid.replaceChildren(...cards);
      else this.grid.append(...cards);
      if (!first) cards[0]?.querySelector("button").focus();
      this.cursor = next;
      this.more.hidden = next === null;
      this.none.hidden = this.grid.children.length > 0;
    } catch (refusal) {
      this.complain(refusal);
    }
  }

  complain(refusal) {
    this.problem.textContent = refusal.message;
    this.problem.hidden = false;
  }

  card(file) {
    const kind = file.mime_type.split("/")[0];
    const picture = make("div", { class: "thumb" }, icon(kind === "image" ? "image" : kind === "video" ? "film" : "docs"));
    const expiry = file.expires_at ? `expires ${ago(file.expires_at)}` : "kept until deleted";
    const card = make("li", { class: "file" }, picture,
      make("div", { class: "about" }, make("strong", { class: "file-name", title: file.filename }, file.filename),
        make("span", {}, `${bytes(file.size_bytes)} · ${file.mime_type}`), make("span", { title: file.expires_at || "" }, `${ago(file.created_at)} · ${expiry}`)),
      make("div", { class: "row" },
        (kind === "video" || kind === "image") && button("edit", "Edit", () => useStored(file, "source"), { "aria-label": `Edit ${file.filename}` }),
        kind === "image" && button("image", "Reference", () => useStored(file, "reference"), { "aria-label": `Use ${file.filename} as a reference image` }),
        signButton("bin", `Delete ${file.filename}`, () => this.remove(file, card))));
    this.preview(file, kind, picture);
    return card;
  }

  // preview shows a preview of a file once it is near the screen.
  preview(file, kind, picture) {
    if (kind !== "image" && kind !== "video") return;
    const watcher = new IntersectionObserver(async ([seen]) => {
      if (!seen.isIntersecting) return;
      watcher.disconnect();
      const url = await urlOf(file);
      if (!url) return; // its icon stays
      picture.replaceChildren(kind === "image" ? make("img", { src: url, alt: "" }) : make("video", { src: url, preload: "metadata", controls: true, playsinline: true, "aria-label": file.filename }));
    }, { rootMargin: "200px" });
    watcher.observe(picture);
  }

  async remove(file, card) {
    if (!await confirm(`Delete ${file.filename}?`, "Its id stops working in new edits at once. This cannot be undone.", "Delete")) return;
    try {
      await media("DELETE", `/v1/files/${file.id}`);
    } catch (refusal) {
      if (refusal.status !== 404) return this.complain(refusal);
    }
    forgetURL(file);
    (card.nextElementSibling || card.previousElementSibling)?.querySelector("button")?.focus();
    card.remove();
    this.none.hidden = this.grid.children.length > 0;
    toast(`${file.filename} is deleted.`);
  }

  async upload(file) {
    this.add.disabled = true;
    this.bar.hidden = false;
    this.bar.value = 0;
    this.problem.hidden = true;
    try {
      await store(file, { progress: share => { this.bar.value = share; }, signal: new AbortController().signal });
      say(`${file.name} is stored.`);
      await this.again();
    } catch (refusal) {
      this.complain(refusal);
    }
    this.bar.hidden = true;
    this.add.disabled = false;
  }
}
