// The Realtime page shows the service's own page for realtime sessions. It is in a frame if it has the same origin as
// the console, because then it can use this tab's key.

import { icon, make } from "./dom.js";
import { settings } from "./service.js";

export const realtimePage = { id: "realtime", title: "Realtime", sign: "realtime", quiet: true, open: section => new Realtime(section) };

class Realtime {
  constructor(section) {
    this.place = make("div", { class: "live" });
    section.append(this.place);
    const words = settings.realtime_url
      ? make("a", { class: "button primary", href: settings.realtime_url, target: "_blank", rel: "noopener" }, icon("realtime"), make("span", {}, "Open the live page"))
      : make("p", {}, "This service has no realtime sessions.");
    this.framed = settings.realtime_url && new URL(settings.realtime_url).origin === location.origin;
    if (!this.framed) this.place.append(make("div", { class: "blankslate" }, icon("realtime"), make("h2", {}, "Live pictures"), make("p", {}, "Edit your camera's live picture."), words));
  }

  // The frame exists only while the page is shown, so a session ends when the user leaves.
  shown() {
    if (this.framed) this.place.replaceChildren(make("iframe", { src: settings.realtime_url, title: "Realtime session", allow: "camera" }));
  }

  left() {
    if (this.framed) this.place.replaceChildren();
  }
}
