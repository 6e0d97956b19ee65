// Loads pages only when they are first opened, because most visits do not need them.

import { button, make } from "./dom.js";

let styled;

// style loads the style sheet that these pages share.
const style = () => styled ??= new Promise((resolve, reject) => {
  document.head.append(make("link", { rel: "stylesheet", href: "account.css", on: { load: resolve, error: reject } }));
});

// later returns a page as main.js describes it. Its code is in the module that load() imports. The module's
// open(section) does the same as the page's open.
export const later = (page, load) => ({ ...page, open: section => new Later(section, load) });

class Later {
  constructor(section, load) {
    this.section = section;
    this.arrive(load, make("p", { class: "note" }, "Loading …"));
  }

  async arrive(load, waiting) {
    this.section.append(waiting);
    const [module] = await Promise.all([load(), style()]).catch(() => []);
    if (!module) {
      // Browsers do not request a module again if it has failed to load, so offer to reload the whole page.
      waiting.replaceWith(make("div", { class: "notice", role: "alert" }, make("p", {}, "This page could not be loaded."), button("again", "Try again", () => location.reload())));
      return;
    }
    waiting.remove();
    this.life = module.open(this.section);
    if (this.place) this.life.shown(this.place);
  }

  shown(place) {
    this.place = place;
    return this.life?.shown(place);
  }

  left() {
    this.place = undefined;
    this.life?.left?.();
  }
}
