// While the user types a prompt, shows which parts the engine follows or ignores.

import { icon, make } from "./dom.js";
import { understand } from "./engine.js";
import { settings } from "./service.js";

const typingPause = 300;

export class Hints {
  // asked returns {model, prompt, reference, shape, resolution}. heard is called with two values: whether the engine
  // ignores the entire prompt, and the result's size, frame rate and length if they are known.
  constructor(asked, heard) {
    this.asked = asked;
    this.heard = heard;
    this.element = make("div", { class: "hints", role: "status" });
  }

  soon() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.ask(), typingPause);
  }

  async ask() {
    this.controller?.abort();
    const controller = this.controller = new AbortController();
    const { model, prompt, reference, shape, resolution } = this.asked();
    this.heard(false);
    if (!prompt) return this.element.replaceChildren();
    const facts = await understand(model, prompt, reference, shape, resolution, controller.signal);
    if (controller.signal.aborted) return;
    if (!facts?.understood) return this.element.replaceChildren();
    this.heard(!facts.understood.length, facts.planned);
    const chips = [
      ...facts.understood.map(words => make("li", { class: "hint" }, icon("check"), words)),
      ...(facts.ignored || []).map(words => make("li", { class: "hint not" }, icon("alert"), `“${words}”`)),
    ];
    this.element.replaceChildren(
      make("ul", { class: "hint-list", "aria-label": "What will happen" }, chips),
      ...(facts.ignored?.length || !facts.understood.length ? [this.explain(facts)] : []));
  }

  // explain returns a text about the engine's abilities, and how to use another one.
  explain(facts) {
    const open = this.element.querySelector("details")?.open;
    return make("details", { class: "how", open }, make("summary", {}, facts.ignored?.length ? "Not followed by this engine" : "What this engine can do"),
      facts.notice && make("p", {}, facts.notice),
      make("p", {}, "The ", make("strong", {}, facts.engine), " engine of this service has built-in ", make("a", { href: "#looks" }, "looks and edits"), ".",
        settings.docs_url && [" ", make("a", { href: `${settings.docs_url}#get_engine` }, "How to set up a generative model")]));
  }
}
