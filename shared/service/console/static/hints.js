// Hints while the user types a prompt: the parts that the engine follows, and the parts that it
// ignores.

import { icon, make } from "./dom.js";
import { understand } from "./engine.js";

const typingPause = 300;

export class Hints {
  // asked returns the current input: {model, prompt, reference}.
  constructor(asked) {
    this.asked = asked;
    this.element = make("div", { class: "hints", role: "status" });
  }

  // soon requests hints when the user pauses typing.
  soon() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.ask(), typingPause);
  }

  async ask() {
    this.controller?.abort();
    const controller = this.controller = new AbortController();
    const { model, prompt, reference } = this.asked();
    if (!prompt) return this.element.replaceChildren();
    const told = await understand(model, prompt, reference, controller.signal);
    if (controller.signal.aborted) return;
    if (!told?.understood) return this.element.replaceChildren();
    const chips = [
      ...told.understood.map(words => make("li", { class: "hint" }, icon("check"), words)),
      ...(told.ignored || []).map(words => make("li", { class: "hint not" }, icon("alert"), `“${words}”`)),
    ];
    this.element.replaceChildren(
      make("ul", { class: "hint-list", "aria-label": "What will happen" }, chips),
      ...(told.ignored?.length || !told.understood.length ? [this.how(told)] : []));
  }

  // how explains the limits of the engine, and names engines without them.
  how(told) {
    const open = this.element.querySelector("details")?.open;
    return make("details", { class: "how", open }, make("summary", {}, told.ignored?.length ? "Needs a generative model: how" : "What this engine can do"),
      told.notice && make("p", {}, told.notice),
      make("p", {}, "The ", make("strong", {}, told.engine), " engine of this service has built-in ", make("a", { href: "#looks" }, "looks"), ". ", make("code", {}, "make run-gpu"), " starts a generative model on a GPU. For a model elsewhere, set ", make("code", {}, "CUTROOM_ENGINE"), " to its server."));
  }
}
