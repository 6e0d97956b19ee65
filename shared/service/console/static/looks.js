// The Looks page: all looks, each with a picture. The user can begin an edit with one.

import { icon, make, number } from "./dom.js";
import { usePrompt } from "./edit.js";
import { looks, pictureURL } from "./engine.js";
import { address, settle } from "./router.js";

export const looksPage = { id: "looks", title: "Looks", within: "edit", sign: "looks", open: section => new Looks(section) };

// phrases replaces the names of edits that need more words, such as a length. A logo needs a reference image.
const phrases = { background: "beach background", "skip the first": "skip the first 1 second", "remove the last": "remove the last 1 second", last: "last 2 seconds", trim: "first 3 seconds", "trim both ends": "trim 1 second off both ends", "keep the middle": "keep the middle 2 seconds", "freeze at": "freeze at 2 s for 1 s", "cut out the middle": "cut out the middle 1 second", "cut out": "cut out seconds 1 to 2", resize: "500 px wide", text: "text “Hello”", logo: [] };

class Looks {
  constructor(section) {
    this.search = make("input", { type: "search", placeholder: "Search, in any language", "aria-label": "Search looks", on: { input: () => this.show() } });
    this.about = make("p", { class: "note" });
    this.grid = make("ul", { class: "grid looks-grid", "aria-label": "Looks" });
    this.changes = make("div", { class: "chips", role: "group", "aria-label": "Smaller changes" });
    this.scenes = make("div", { class: "chips", role: "group", "aria-label": "Scenes for text-to-video" });
    this.none = make("p", { class: "notice", hidden: true });
    section.append(
      make("div", { class: "page-tools" }, make("div", { class: "filters" }, this.search), make("a", { class: "button", href: address("edit") }, icon("back"), make("span", {}, "Edit"))),
      this.about, this.none, this.grid,
      this.more = make("div", { class: "looks-more", hidden: true }, make("h2", {}, "Smaller changes"), make("p", { class: "note" }, "Use them with or without a look."), this.changes,
        make("h2", {}, "Scenes"), make("p", { class: "note" }, "Possible subjects of a video from text."), this.scenes));
  }

  async shown({ query }) {
    this.search.value = query.get("q") || "";
    this.facts ??= await looks();
    if (!this.facts?.looks.length) {
      this.none.hidden = false;
      this.none.textContent = this.facts ? `The ${this.facts.engine} engine has no list of looks: describe what you want.` : "The looks could not be loaded. Try again later.";
      return;
    }
    this.none.hidden = true;
    this.pictures ??= new Map(this.facts.looks.map(look => [look.name, pictureURL(look.picture)]));
    const choose = words => make("button", { type: "button", on: { click: () => usePrompt(words) } }, words);
    this.changes.replaceChildren(...this.facts.changes.flatMap(({ name }) => phrases[name] ?? name).map(choose));
    this.scenes.replaceChildren(...this.facts.scenes.map(name => make("button", { type: "button", on: { click: () => usePrompt(name, "words") } }, name)));
    this.more.hidden = false;
    this.show();
  }

  show() {
    if (!this.pictures) return;
    const wanted = this.search.value.trim().toLowerCase();
    settle("looks", [], { q: wanted });
    const found = this.facts.looks.filter(look => [look.name, ...look.words, ...look.names].some(word => word.toLowerCase().includes(wanted)));
    this.about.textContent = `${number(found.length)} of ${number(this.facts.looks.length)} looks of the ${this.facts.engine} engine. Choose one, or write its name in the prompt.`;
    this.grid.replaceChildren(...found.map(look => make("li", { class: "file look" },
      make("button", { type: "button", on: { click: () => usePrompt(look.name) }, title: look.words.join(", ") },
        make("span", { class: "thumb" }, make("img", { src: this.pictures.get(look.name), alt: "", loading: "lazy" })), make("strong", {}, look.name)))));
  }
}
