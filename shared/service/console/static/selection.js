// Lets users select several cards of a list, and delete them after one confirmation.

import { button, confirm, icon, make, number, say, signButton, toast } from "./dom.js";

// atOnce limits how many items are deleted concurrently. If the rate limit rejects a deletion, it is tried again
// after pause milliseconds.
const atOnce = 3, tries = 30, pause = 1000;

export class Selection {
  // grid contains the cards, with their ids in data-id. words are {one, many, warning} for the confirmation. drop(id)
  // deletes an item. gone(ids) is called with the deleted items, and changed(chosen) whenever the selection changes.
  constructor(grid, words, { drop, gone, changed = () => {} }, ...tools) {
    Object.assign(this, { grid, words, drop, gone, changed });
    this.chosen = new Map(); // the data of each selected card, by id
    this.count = make("strong", {});
    this.remove = button("bin", "Delete", () => this.ask(), { class: "bad", "aria-keyshortcuts": "Delete" });
    this.all = button("check", "Select all shown", () => this.chooseAll());
    this.bar = make("div", { class: "selected", role: "group", "aria-label": `Selected ${words.many}`, hidden: true },
      this.count, tools, this.all, this.remove, signButton("close", "Clear the selection", () => this.clear(), { "aria-keyshortcuts": "Escape" }));
    this.trouble = make("div", { class: "notice", role: "alert", hidden: true });
    this.element = make("div", { class: "selection" }, this.bar, this.trouble);
    grid.addEventListener("keydown", event => {
      if (!this.chosen.size) return;
      if (event.key === "Escape") this.clear();
      else if (event.key === "Delete") this.ask();
      else return;
      event.preventDefault();
    });
  }

  // box returns a checkbox with the label card.name. Each change calls this.changed with the cards of all selected items.
  box(id, card) {
    const input = make("input", { type: "checkbox", "aria-label": `Select ${card.name}`, on: {
      change: () => this.choose(id, card, input.checked),
      click: event => event.shiftKey && this.chooseTo(id, input.checked),
    } });
    input.checked = this.chosen.has(id);
    return make("label", { class: "choose" }, input, make("span", {}, "Select"));
  }

  choose(id, card, is) {
    if (is) this.chosen.set(id, card);
    else this.chosen.delete(id);
    this.last = id;
    this.show();
  }

  boxes() { return [...this.grid.querySelectorAll(".choose input")]; }

  set(input, is) {
    if (input.checked === is) return;
    input.checked = is;
    input.dispatchEvent(new Event("change"));
  }

  // chooseTo selects or deselects all cards from the last one chosen to this one.
  chooseTo(id, is) {
    const boxes = this.boxes(), at = wanted => boxes.findIndex(box => box.closest("li").dataset.id === wanted);
    const [from, to] = [at(this.last), at(id)].sort((a, b) => a - b);
    if (from >= 0) boxes.slice(from, to + 1).forEach(box => this.set(box, is));
  }

  chooseAll() { this.boxes().forEach(box => this.set(box, true)); }

  clear() {
    const within = this.bar.contains(document.activeElement);
    this.chosen.clear();
    this.boxes().forEach(box => { box.checked = false; });
    this.show();
    if (within) this.boxes()[0]?.focus();
  }

  show() {
    const { size } = this.chosen;
    this.bar.hidden = size === 0;
    this.grid.classList.toggle("choosing", size > 0);
    this.count.textContent = `${number(size)} selected`;
    this.all.hidden = this.boxes().every(box => box.checked);
    this.changed(this.chosen);
  }

  async ask() {
    const { one, many, warning } = this.words, chosen = [...this.chosen];
    if (this.busy || !chosen.length) return;
    const shown = new Set(this.boxes().map(box => box.closest("li").dataset.id)), unseen = chosen.filter(([id]) => !shown.has(id)).length;
    const what = chosen.length === 1 ? `“${chosen[0][1].name}”` : `${number(chosen.length)} ${many}`;
    if (!await confirm(`Delete ${what}?`, [unseen && `${number(unseen)} of them ${unseen === 1 ? "is" : "are"} not visible.`, warning].filter(Boolean).join(" "), chosen.length === 1 ? `Delete the ${one}` : `Delete ${number(chosen.length)}`)) return;
    await this.delete(chosen);
  }

  async delete(chosen) {
    const gone = [], failed = [], waiting = [...chosen];
    this.busy = true;
    this.trouble.hidden = true;
    const controls = [...this.bar.querySelectorAll("button")];
    controls.forEach(control => { control.disabled = true; });
    await Promise.all(Array.from({ length: atOnce }, async () => {
      for (let next; (next = waiting.shift());) {
        const [id, { name }] = next;
        const why = await this.deleteOne(id);
        if (why) failed.push([name, why]);
        else gone.push(id);
        this.count.textContent = `Deleting: ${number(gone.length + failed.length)} of ${number(chosen.length)}`;
      }
    }));
    this.busy = false;
    controls.forEach(control => { control.disabled = false; });
    gone.forEach(id => this.chosen.delete(id));
    this.leave(gone);
    this.report(gone.length, failed);
  }

  // deleteOne resolves to the reason why an item could not be deleted, or to undefined if it was deleted.
  async deleteOne(id) {
    for (let tried = 1; ; tried++) {
      try {
        await this.drop(id);
        return undefined;
      } catch (refusal) {
        if (refusal.status === 404) return undefined; // it is already deleted, perhaps by another program
        if (refusal.status !== 429 || tried === tries) return refusal.message;
        await new Promise(resolve => setTimeout(resolve, pause));
      }
    }
  }

  // leave moves the focus to a card that remains.
  leave(ids) {
    const cards = [...this.grid.children], lost = new Set(ids);
    const first = cards.findIndex(card => lost.has(card.dataset.id));
    for (const card of cards) if (lost.has(card.dataset.id)) card.remove();
    this.gone(ids);
    this.show();
    const left = this.boxes();
    (left[Math.min(Math.max(first, 0), left.length - 1)] || this.grid.parentElement.querySelector("input, button"))?.focus();
  }

  report(count, failed) {
    const { one, many } = this.words, total = count + failed.length;
    if (!failed.length) {
      const words = count === 1 ? `The ${one} was deleted.` : `${number(count)} ${many} were deleted.`;
      say(words);
      return toast(words);
    }
    this.trouble.replaceChildren(
      make("div", { class: "failures" }, icon("alert"),
        make("div", {}, make("p", {}, total === 1 ? `The ${one} could not be deleted:` : `${number(failed.length)} of ${number(total)} ${many} could not be deleted, and ${failed.length === 1 ? "is" : "are"} still selected:`),
          make("ul", {}, failed.map(([name, why]) => make("li", {}, make("strong", {}, name), `: ${why}`))))),
      signButton("close", "Close", () => { this.trouble.hidden = true; }));
    this.trouble.hidden = false;
  }
}
