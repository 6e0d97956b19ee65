// The Files page: the files that the account has stored.

import { ago, arrange, button, bytes, confirm, copy, icon, make, save, say, signButton, since, toast } from "./dom.js";
import { useStored } from "./edit.js";
import { publish, subscribe } from "./news.js";
import { verify } from "./result.js";
import { Selection } from "./selection.js";
import { media } from "./service.js";
import { forgetURL, smallOf, urlOf } from "./stored.js";
import { store } from "./upload.js";

const pageSize = 24, mostOfPage = 1000, day = 86400;
const lives = [[day, "for a day"], [7 * day, "for a week"], [30 * day, "for 30 days"], ["persistent", "until deleted"]];

export const filesPage = { id: "files", title: "Files", sign: "files", open: section => new Files(section) };

class Files {
  constructor(section) {
    this.grid = make("ul", { class: "grid", "aria-label": "Stored files" });
    this.problem = make("p", { class: "notice", role: "alert", hidden: true });
    this.none = make("div", { class: "blankslate", hidden: true }, icon("files"), make("h2", {}, "No files yet"), make("p", {}, "Store a file once and use its id in any edit. Drop files anywhere on this page."));
    this.more = button("add", "More files", () => this.next(), { hidden: true });
    this.picker = make("input", { type: "file", multiple: true, class: "unseen", tabindex: -1, "aria-hidden": "true", on: { change: () => {
      this.upload([...this.picker.files]);
      this.picker.value = "";
    } } });
    this.selection = new Selection(this.grid, { one: "file", many: "files", warning: "New edits can no longer use the ids of deleted files. This cannot be undone." }, {
      drop: id => media("DELETE", `/v1/files/${id}`), gone: ids => this.gone(ids),
    });
    this.life = make("select", { id: "file-life" }, lives.map(([value, words]) => make("option", { value }, words)));
    const check = button("seal", "Verify a file", () => verify(), { title: "Check who made an image or a video, and whether it was changed" });
    this.uploads = make("ul", { class: "uploads", "aria-label": "Uploads" });
    this.add = button("add", "Upload files", () => this.picker.click(), { class: "primary", id: "upload" });
    section.append(
      make("div", { class: "page-tools" }, make("p", { class: "note" }, "Any form accepts a file's id instead of the file. Files expire unless they are kept until deleted."),
        make("div", { class: "row" }, make("label", { class: "kept-for", for: "file-life" }, "Keep", this.life), check, this.add)),
      this.picker, this.uploads, this.selection.element, this.problem, this.grid, this.none, make("div", { class: "row end" }, this.more));
    this.listen(section);
    subscribe("files", () => section.hidden || this.read(), () => section.hidden ? 0 : 30);
  }

  shown() { return this.read(); }

  listen(section) {
    const carries = event => [...event.dataTransfer?.types || []].includes("Files");
    const over = is => section.classList.toggle("over", is);
    section.addEventListener("dragover", event => carries(event) && (event.preventDefault(), over(true)));
    section.addEventListener("dragleave", event => section.contains(event.relatedTarget) || over(false));
    section.addEventListener("drop", event => {
      if (!carries(event)) return;
      event.preventDefault();
      over(false);
      this.upload([...event.dataTransfer.files]);
    });
  }

  read() {
    this.reading = this.readAnew(this.turn = {});
    return this.reading;
  }

  async readAnew(turn) {
    const page = await this.page(Math.min(mostOfPage, Math.max(pageSize, this.grid.children.length)));
    if (!page || this.turn !== turn) return;
    const cards = new Map([...this.grid.children].map(card => [card.dataset.id, card]));
    arrange(this.grid, page.files.map(file => cards.get(file.id) || this.card(file)));
    this.settle(page);
  }

  async next() {
    const cursor = this.cursor, page = await this.page(pageSize, cursor);
    if (!page) return;
    await this.reading;
    if (this.cursor !== cursor) return this.next(); // the list was read again while this page was loading
    const cards = page.files.map(file => this.card(file));
    this.grid.append(...cards);
    cards[0]?.querySelector("button").focus();
    this.settle(page);
  }

  async page(limit, cursor) {
    try {
      const query = new URLSearchParams({ limit, ...(cursor ? { cursor } : {}) });
      const page = await (await media("GET", `/v1/files?${query}`)).json();
      this.problem.hidden = true;
      return page;
    } catch (refusal) {
      this.complain(refusal);
      return undefined;
    }
  }

  settle({ next_cursor: next }) {
    this.cursor = next;
    this.more.hidden = next === null;
    this.none.hidden = this.grid.children.length > 0;
    this.selection.show();
  }

  // gone updates the page after files were deleted.
  gone(ids) {
    ids.forEach(id => forgetURL({ id }));
    this.none.hidden = this.grid.children.length > 0;
    if (ids.length) publish("files");
    if (ids.length && !this.grid.children.length) this.read();
  }

  complain(refusal) {
    this.problem.textContent = refusal.message;
    this.problem.hidden = false;
  }

  card(file) {
    const kind = file.mime_type.split("/")[0];
    const picture = make("div", { class: "thumb" }, icon(kind === "image" ? "image" : kind === "video" ? "film" : "docs"));
    const expiry = file.expires_at ? `expires ${ago(file.expires_at)}` : "kept until deleted";
    const card = make("li", { class: "file", "data-id": file.id }, picture, this.selection.box(file.id, { name: file.filename }),
      make("div", { class: "about" }, make("strong", { class: "file-name", title: file.filename }, file.filename),
        make("span", {}, `${bytes(file.size_bytes)} · ${file.mime_type}`), make("span", { title: file.expires_at ? new Date(file.expires_at).toLocaleString() : "" }, since(file.created_at), ` · ${expiry}`),
        make("button", { type: "button", class: "file-id", title: "Copy the id", "aria-label": `Copy the id of ${file.filename}: ${file.id}`, on: { click: () => copy(file.id, "The id was") } }, make("code", {}, file.id), icon("copy"))),
      make("div", { class: "row" },
        (kind === "video" || kind === "image") && button("edit", "Edit", () => useStored(file, "source"), { "aria-label": `Edit ${file.filename}` }),
        kind === "image" && button("image", "Reference", () => useStored(file, "reference"), { "aria-label": `Use ${file.filename} as a reference image` }),
        make("span", { class: "end-tools" },
          (kind === "video" || kind === "image") && signButton("seal", `Verify ${file.filename}`, () => verify(file.filename, `/v1/uploads/${file.id}`)),
          signButton("download", `Download ${file.filename}`, () => this.download(file)),
          signButton("bin", `Delete ${file.filename}`, () => this.remove(file), { class: "sign bad" }))));
    this.preview(file, kind, picture);
    return card;
  }

  // preview loads a file's preview when the file is scrolled into view.
  preview(file, kind, picture) {
    if (kind !== "image" && kind !== "video") return;
    const watcher = new IntersectionObserver(async ([seen]) => {
      if (!seen.isIntersecting) return;
      watcher.disconnect();
      const little = await smallOf(file), url = little || await urlOf(file);
      const sign = picture.firstChild, play = kind === "video" && signButton("play", `Play ${file.filename}`, () => this.play(file, picture), { class: "sign play" });
      if (url) {
        const shown = little || kind === "image" ? make("img", { src: url, alt: "" }) : make("video", { src: `${url}#t=0.1`, preload: "metadata", playsinline: true, tabindex: -1, "aria-hidden": "true" });
        shown.addEventListener("error", () => shown.replaceWith(sign), { once: true }); // a damaged file or an unsupported format
        sign.replaceWith(shown);
      }
      if (play) picture.append(play);
    }, { rootMargin: "200px" });
    watcher.observe(picture);
  }

  async play(file, picture) {
    const url = await urlOf(file);
    if (!url) return toast(`${file.filename} is too large to play here. Download it instead.`);
    const video = make("video", { src: url, controls: true, autoplay: true, playsinline: true, "aria-label": file.filename });
    const held = picture.contains(document.activeElement);
    picture.replaceChildren(video);
    if (held) video.focus();
    return undefined;
  }

  // download loads the entire file into memory, because the request needs the key in a header, which a plain link
  // cannot send.
  async download(file) {
    toast(`Downloading ${file.filename} …`);
    try {
      const answer = await media("GET", `/v1/uploads/${file.id}`);
      save(await answer.blob(), file.filename);
    } catch (refusal) {
      this.complain(refusal);
    }
  }

  async remove(file) {
    if (!await confirm(`Delete ${file.filename}?`, "New edits can no longer use its id. This cannot be undone.", "Delete")) return;
    try {
      await media("DELETE", `/v1/files/${file.id}`);
    } catch (refusal) {
      if (refusal.status !== 404) return this.complain(refusal);
    }
    this.selection.chosen.delete(file.id);
    this.selection.leave([file.id]);
    toast(`${file.filename} is deleted.`);
  }

  // upload stores the files one after the other.
  async upload(files) {
    const waiting = files.map(file => {
      const controller = new AbortController();
      const bar = make("progress", { max: 1, "aria-label": `Upload of ${file.name}` }), state = make("span", { class: "note" }, "Waiting");
      const row = make("li", {}, make("span", { class: "file-name" }, file.name), state, bar,
        signButton("close", `Cancel the upload of ${file.name}`, () => {
          controller.abort();
          row.remove();
        }));
      return { file, controller, bar, state, row };
    });
    this.uploads.append(...waiting.map(one => one.row));
    for (const one of waiting) await this.store(one);
  }

  async store({ file, controller, bar, state, row }) {
    if (controller.signal.aborted) return;
    const show = words => share => {
      bar.value = share;
      state.textContent = `${words} ${Math.floor(share * 100)} %`;
    };
    try {
      await store(file, { progress: show("Uploading"), reading: show("Reading"), signal: controller.signal }, this.life.value);
      row.remove();
      say(`${file.name} is stored.`);
      publish("files");
      await this.read();
    } catch (refusal) {
      if (refusal.name === "AbortError") return;
      bar.hidden = true;
      state.textContent = refusal.message;
      state.setAttribute("role", "alert");
      row.classList.add("failed");
    }
  }
}
