// The account's latest jobs.

import { ago, make } from "./dom.js";
import { ended, list } from "./jobs.js";

const shownAtMost = 12;

const states = { pending: "Waiting", processing: "Editing", completed: "Done", failed: "Failed" };

export class Recent {
  // look is called with a job that was chosen. promptOf returns the prompt of a job
  // by its id, undefined if this tab does not know it: the service does not return
  // prompts.
  constructor(look, promptOf) {
    this.look = look;
    this.promptOf = promptOf;
    this.jobs = [];
    this.items = make("ol", {});
    this.none = make("p", { class: "note" }, "Your edits appear here.");
    this.element = make("aside", { class: "recent", "aria-labelledby": "recent-title" }, make("h2", { id: "recent-title" }, "Recent edits"), this.items, this.none);
  }

  // read fetches the list. If there is none, what this tab has seen stays.
  async read() {
    try {
      const jobs = await list(shownAtMost);
      if (jobs) this.jobs = jobs;
    } catch {
      // The list is optional; the rest of the page shows its own failures.
    }
    this.show();
  }

  // update records the present state of a job.
  update(job) {
    const at = this.jobs.findIndex(one => one.job_id === job.job_id);
    if (at < 0) this.jobs.unshift(job);
    else this.jobs[at] = job;
    this.jobs.length = Math.min(this.jobs.length, shownAtMost);
    this.show();
  }

  show() {
    this.none.hidden = this.jobs.length > 0;
    const focused = this.items.contains(document.activeElement) ? document.activeElement.dataset.id : undefined;
    this.items.replaceChildren(...this.jobs.map(job => {
      const state = job.error?.code === "cancelled" ? "Cancelled" : states[job.status];
      const prompt = this.promptOf(job.job_id);
      return make("li", {}, make("button", { type: "button", "data-status": job.status, "data-id": job.job_id, on: { click: () => this.look(job) } },
        make("span", { class: "dot" }),
        make("span", { class: "name", title: prompt }, prompt || job.model),
        make("span", { class: "when" }, ago(job.created_at)),
        make("span", { class: "state" }, ended(job) || job.status === "pending" ? state : `${Math.floor(job.progress * 100)} %`)));
    }));
    if (focused) this.items.querySelector(`[data-id="${focused}"]`)?.focus();
  }
}
