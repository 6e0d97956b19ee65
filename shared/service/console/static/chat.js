// The page Chat: a conversation with a model of the inference gateway.

import { button, copy, icon, make, number, say } from "./dom.js";
import { chatCommand } from "./command.js";
import { events, inference, Refusal, unreachable } from "./service.js";

export const chatPage = { id: "chat", title: "Chat", sign: "chat", quiet: true, open: section => new Chat(section) };

class Chat {
  constructor(section) {
    this.messages = []; // {role, content} as they are sent
    this.log = make("div", { class: "log", role: "log", "aria-label": "Conversation", tabindex: 0 });
    this.text = make("textarea", { id: "message", rows: 1, placeholder: "Write a message", "aria-label": "Message" });
    this.text.addEventListener("keydown", event => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      this.ask();
    });
    this.send = make("button", { class: "primary", id: "send" }, icon("arrow"), make("span", {}, "Send"));
    this.stop = button("close", "Stop", () => this.controller?.abort(), { id: "stop", hidden: true });
    this.model = make("select", { id: "chat-model" });
    this.system = make("textarea", { id: "system", rows: 4, placeholder: "You are …" });
    this.temperature = make("input", { id: "temperature", type: "range", min: 0, max: 2, step: 0.1, value: 1 });
    this.heat = make("output", { for: "temperature" }, "1");
    this.temperature.addEventListener("input", () => { this.heat.textContent = this.temperature.value; });
    this.longest = make("input", { id: "max-tokens", type: "number", min: 1, placeholder: "The model's own limit" });
    this.used = make("p", { class: "note" }, "Nothing used yet.");
    this.total = 0;
    const field = (label, control, ...more) => make("div", { class: "field" }, make("label", { for: control.id }, label, ...more), control);
    section.append(
      make("div", { class: "talk" }, this.log,
        make("form", { class: "composer say", on: { submit: event => {
          event.preventDefault();
          this.ask();
        } } }, this.text, this.stop, this.send)),
      make("aside", { class: "side", "aria-label": "Parameters" },
        field("Model", this.model), field("System prompt", this.system), field("Temperature", this.temperature, this.heat), field("Max tokens", this.longest),
        make("div", { class: "row" }, button("copy", "Copy as curl", () => copy(chatCommand(this.body()), "The line was")), button("again", "New chat", () => this.clear(), { id: "new-chat" })),
        this.used));
    this.clear();
    this.readModels();
  }

  async readModels() {
    try {
      const { data } = await (await inference("GET", "/v1/models")).json();
      this.limits = new Map(data.map(model => [model.id, model.max_output_length]));
      this.model.replaceChildren(...data.filter(model => model.capabilities.includes("chat")).map(model => make("option", { value: model.id }, model.id)));
      const limit = () => { this.longest.max = this.limits.get(this.model.value) || ""; };
      this.model.addEventListener("change", limit);
      limit();
    } catch (refusal) {
      this.complain(refusal);
    }
  }

  clear() {
    this.controller?.abort();
    this.messages = [];
    this.log.replaceChildren(make("div", { class: "blankslate" }, icon("chat"), make("h2", {}, "Talk to a model"), make("p", {}, "Answers appear as they are written. Enter sends, Shift and Enter begins a new line.")));
  }

  // body returns what the next call sends, or what the last call sent.
  body() {
    const system = this.system.value.trim();
    return {
      model: this.model.value,
      messages: [...(system ? [{ role: "system", content: system }] : []), ...this.messages],
      temperature: +this.temperature.value,
      ...(this.longest.value ? { max_tokens: +this.longest.value } : {}),
      stream: true, stream_options: { include_usage: true },
    };
  }

  add(role, text) {
    if (!this.messages.length) this.log.replaceChildren();
    const words = make("div", { class: "words" });
    const message = make("article", { class: `message ${role}`, "aria-label": role === "user" ? "You" : "The model" }, words);
    write(words, text);
    this.log.append(message);
    this.log.scrollTop = this.log.scrollHeight;
    return { message, words };
  }

  async ask() {
    const text = this.text.value.trim();
    if (!text || this.controller) return;
    this.add("user", text);
    this.messages.push({ role: "user", content: text });
    this.text.value = "";
    await this.answer();
  }

  // answer asks the model to continue the conversation.
  async answer() {
    const { message, words } = this.add("assistant", "");
    const controller = this.controller = new AbortController(), conversation = this.messages;
    const began = performance.now();
    let written = "", usage, broken;
    message.classList.add("writing");
    this.send.hidden = true;
    this.stop.hidden = false;
    try {
      const answer = await inference("POST", "/v1/chat/completions", { body: this.body(), signal: controller.signal });
      for await (const { data } of events(answer)) {
        if (data === "[DONE]") break;
        const chunk = JSON.parse(data);
        if (chunk.error) throw new Refusal(502, chunk.error.message);
        usage = chunk.usage || usage;
        const delta = chunk.choices?.[0]?.delta || {};
        if (delta.reasoning_content && !written) words.textContent = "Thinking …";
        if (!delta.content) continue;
        written += delta.content;
        const follows = this.log.scrollHeight - this.log.scrollTop - this.log.clientHeight < 60;
        write(words, written);
        if (follows) this.log.scrollTop = this.log.scrollHeight;
      }
    } catch (failure) {
      broken = failure;
    }
    if (this.controller === controller) this.controller = undefined;
    message.classList.remove("writing");
    this.send.hidden = false;
    this.stop.hidden = true;
    if (conversation !== this.messages) return; // it has been cleared meanwhile
    const took = (performance.now() - began) / 1000;
    const stopped = controller.signal.aborted;
    if (written) this.messages.push({ role: "assistant", content: written });
    if (usage) {
      this.total += usage.total_tokens;
      this.used.textContent = `${number(this.total)} tokens used in this tab.`;
      message.append(make("p", { class: "figures" }, `${number(usage.prompt_tokens)} in · ${number(usage.completion_tokens)} out · ${took.toFixed(1)} s`));
    } else if (stopped) message.append(make("p", { class: "figures" }, "Stopped. What it used is counted by the service."));
    if (broken && !stopped) {
      if (!written) message.remove();
      this.complain(broken.status === undefined ? new Refusal(0, written ? "The answer broke off." : unreachable) : broken, written ? undefined : () => this.answer());
    } else say(stopped ? "Stopped." : "The answer is complete.");
    this.text.focus();
  }

  complain(refusal, again) {
    const notice = make("div", { class: "notice", role: "alert" }, make("p", {}, refusal.message), again && button("again", "Try again", () => {
      notice.remove();
      again();
    }));
    this.log.append(notice);
    this.log.scrollTop = this.log.scrollHeight;
  }
}

// write shows a text, with its fenced code set apart.
function write(place, text) {
  place.replaceChildren(...text.split(/^```/m).map((part, i) => {
    if (i % 2 === 0) return make("span", {}, part.replace(/^\n+|\n+$/g, i ? "" : "$&"));
    const [, code = ""] = part.match(/^[^\n]*\n([\s\S]*)$/) || ["", part];
    return make("pre", { tabindex: 0, "aria-label": "Code" }, make("code", {}, code.replace(/\n$/, "")));
  }));
}
