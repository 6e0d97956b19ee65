// The Chat page: conversations with models, through the inference gateway.

import { ago, button, confirm, copy, icon, make, number, save, say, signButton, toast } from "./dom.js";
import { all, drop, keep } from "./chats.js";
import { chatCommand } from "./command.js";
import { render } from "./markdown.js";
import { settle, visit } from "./router.js";
import { events, inference, Refusal, unreachable } from "./service.js";

export const chatPage = { id: "chat", title: "Chat", sign: "chat", quiet: true, open: section => new Chat(section) };

// thinking is how long a stream may be silent, which is long because models think. askAgain is the pause before the
// list of models is requested again if the gateway does not respond. Both are in milliseconds.
const thinking = 600_000, askAgain = 3000;

const newID = () => crypto.getRandomValues(new Uint32Array(2)).join("-");

class Chat {
  constructor(section) {
    this.section = section;
    this.log = make("div", { class: "log", role: "log", "aria-label": "Conversation", tabindex: 0 });
    this.text = make("textarea", { id: "message", rows: 1, placeholder: "Write a message", "aria-label": "Message" });
    this.text.addEventListener("keydown", event => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      this.ask();
    });
    this.send = make("button", { class: "primary", id: "send" }, icon("arrow"), make("span", {}, "Send"));
    this.stop = button("close", "Stop", () => this.controller?.abort(), { id: "stop", hidden: true });
    this.model = make("select", { id: "chat-model", on: { change: () => this.limit() } });
    this.system = make("textarea", { id: "system", rows: 4, placeholder: "You are …" });
    this.temperature = make("input", { id: "temperature", type: "range", min: 0, max: 2, step: 0.1, value: 1 });
    this.heat = make("output", { for: "temperature" }, "1");
    this.temperature.addEventListener("input", () => { this.heat.textContent = this.temperature.value; });
    this.longest = make("input", { id: "max-tokens", type: "number", min: 1, placeholder: "The model's own limit" });
    this.used = make("p", { class: "note", id: "tokens-used" }, "No tokens used yet.");
    this.total = 0;
    this.past = make("ol", { class: "past-chats" });
    this.find = make("input", { type: "search", placeholder: "Search chats", "aria-label": "Search chats", on: { input: async () => this.showPast(await all()) } });
    this.trouble = make("div", {});
    const field = (label, control, ...more) => make("div", { class: "field" }, make("label", { for: control.id }, label, ...more), control);
    section.append(
      make("div", { class: "talk" }, this.log, this.trouble,
        make("form", { class: "composer say", on: { submit: event => {
          event.preventDefault();
          this.ask();
        } } }, this.text, this.stop, this.send)),
      make("aside", { class: "side", "aria-label": "Parameters" },
        button("add", "New chat", () => visit("chat"), { id: "new-chat" }),
        field("Model", this.model), field("System prompt", this.system), field("Temperature", this.temperature, this.heat), field("Max tokens", this.longest),
        make("div", { class: "row" }, button("copy", "Copy as curl", () => copy(chatCommand(this.body()), "The command was")), button("download", "Save as Markdown", () => this.save())),
        this.used,
        make("section", { "aria-labelledby": "past-title" }, make("h2", { id: "past-title" }, "Past chats"), this.find, this.past, make("p", { class: "note" }, "They stay in this browser."))));
    this.clear();
    // The event means that another tab has saved or deleted a conversation.
    addEventListener("storage", async ({ key }) => key?.startsWith("cutroom-chats") && !section.hidden && this.showPast(await all()));
  }

  async shown({ parts: [id] }) {
    if (!this.model.options.length) this.readModels();
    const chats = await all();
    this.showPast(chats);
    if ((id || "") === (this.id || "")) return;
    const found = chats.find(chat => chat.id === id);
    if (found) this.open(found);
    else this.clear();
    if (!found && id) settle("chat");
  }

  async readModels() {
    clearTimeout(this.asking);
    try {
      const { data } = await (await inference("GET", "/v1/models", { timeout: 10_000 })).json();
      this.limits = new Map(data.map(model => [model.id, model.max_output_length]));
      const chosen = this.model.value || this.wanted;
      this.model.replaceChildren(...data.filter(model => model.capabilities.includes("chat")).map(model => make("option", { value: model.id }, model.id)));
      if ([...this.model.options].some(option => option.value === chosen)) this.model.value = chosen;
      this.limit();
      if (this.away) say("The models are available again.");
      this.away = false;
      this.trouble.replaceChildren();
    } catch (refusal) {
      this.away = true;
      this.trouble.replaceChildren(make("div", { class: "notice", role: "alert" }, make("p", {}, `The models are not available yet. ${refusal.message}`), button("again", "Try again", () => this.readModels())));
      if (refusal.status !== 401 && refusal.status !== 403) this.asking = setTimeout(() => this.section.hidden || this.readModels(), askAgain);
    }
  }

  limit() {
    this.longest.max = this.limits?.get(this.model.value) || "";
  }

  // showPast lists the conversations that contain all words of the search.
  showPast(chats) {
    const words = this.find.value.toLowerCase().split(/\s+/).filter(Boolean);
    const said = chat => [chat.title, ...chat.messages.map(message => message.content)].join(" ").toLowerCase();
    const found = chats.filter(chat => words.length === 0 || words.every(word => said(chat).includes(word)));
    this.past.replaceChildren(...!found.length && words.length ? [make("li", {}, make("p", { class: "note" }, "No chats contain these words."))] : found.map(chat => make("li", {},
      make("a", { href: `#chat/${chat.id}`, title: chat.title, "aria-current": chat.id === this.id && "true" }, make("span", { class: "file-name" }, chat.title), make("span", { class: "when" }, ago(chat.at))),
      signButton("bin", `Delete the chat ${chat.title}`, () => this.forget(chat)))));
    this.past.parentElement.hidden = !chats.length;
  }

  save() {
    const parts = this.messages.map(({ role, content }) => `## ${role === "user" ? "You" : "The model"}\n\n${content}\n`);
    if (!parts.length) return toast("The chat is empty.");
    const system = this.system.value.trim(), title = this.messages[0].content.replace(/\s+/g, " ").slice(0, 80);
    const text = [`# ${title}\n`, `Model: ${this.model.value}\n`, ...system ? [`## System prompt\n\n${system}\n`] : [], ...parts].join("\n");
    return save(new Blob([text], { type: "text/markdown" }), `${title.normalize("NFC").replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-+|-+$/g, "").slice(0, 60) || "chat"}.md`);
  }

  async forget(chat) {
    if (!await confirm("Delete this chat?", chat.title, "Delete")) return;
    await drop(chat.id);
    if (chat.id === this.id) visit("chat");
    this.showPast(await all());
  }

  clear() {
    this.controller?.abort();
    this.controller = undefined;
    this.id = "";
    this.messages = []; // {role, content}, as in requests
    this.waiting(false);
    this.log.replaceChildren(make("div", { class: "blankslate" }, icon("chat"), make("h2", {}, "Talk to a model"), make("p", {}, "Responses appear as they are written. Press Enter to send, Shift+Enter for a new line.")));
  }

  open(chat) {
    this.clear();
    this.log.replaceChildren();
    this.id = chat.id;
    this.system.value = chat.system || "";
    this.wanted = chat.model;
    if ([...this.model.options].some(option => option.value === chat.model)) this.model.value = chat.model;
    for (const { role, content } of chat.messages) {
      this.messages.push({ role, content });
      this.add(role, content);
    }
  }

  async keep() {
    if (!this.messages.length) return;
    this.id ||= newID();
    const first = this.messages.find(message => message.role === "user")?.content || "";
    await keep({ id: this.id, title: first.replace(/\s+/g, " ").slice(0, 80), model: this.model.value, system: this.system.value, messages: this.messages });
    if (!this.section.hidden) settle("chat", [this.id]);
    this.showPast(await all());
  }

  // body returns the request body for the conversation so far.
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
    if (!this.log.querySelector(".message")) this.log.replaceChildren();
    const at = this.log.querySelectorAll(".message").length;
    const words = make("div", { class: "words" });
    const tools = make("div", { class: "message-tools" },
      signButton("copy", "Copy the message", () => copy(this.messages[at]?.content ?? words.textContent, "The message was")),
      role === "user" ? signButton("pen", "Edit the message", () => this.change(at)) : signButton("again", "Answer again", () => this.regenerate(at)));
    const message = make("article", { class: `message ${role}`, "aria-label": role === "user" ? "You" : "The model" }, words, tools);
    write(words, role, text);
    this.log.append(message);
    this.log.scrollTop = this.log.scrollHeight;
    return { message, words };
  }

  cut(at) {
    this.messages = this.messages.slice(0, at);
    const children = [...this.log.children];
    children.slice(children.indexOf(this.log.querySelectorAll(".message")[at])).forEach(one => one.remove());
  }

  // change lets the user edit a message that was sent. When it is sent again, all later messages are removed.
  change(at) {
    if (this.controller) return;
    const message = this.log.querySelectorAll(".message")[at], before = this.messages[at].content;
    const field = make("textarea", { "aria-label": "Edited message", rows: 2 }, before);
    const form = make("form", { class: "changing", on: { submit: event => {
      event.preventDefault();
      const text = field.value.trim();
      if (!text) return;
      this.cut(at);
      this.text.value = text;
      this.ask();
    } } }, field, make("div", { class: "row end" }, button("", "Keep the original", () => {
      form.replaceWith(...hidden);
    }), make("button", { class: "primary" }, "Send")));
    const hidden = [...message.children];
    message.replaceChildren(form);
    field.focus();
  }

  async regenerate(at) {
    if (this.controller) return;
    this.cut(at);
    await this.answer();
  }

  async ask() {
    const text = this.text.value.trim();
    if (!text || this.controller) return;
    if (!this.model.value) return this.complain(new Refusal(0, "No chat model is available yet."));
    this.add("user", text);
    this.messages.push({ role: "user", content: text });
    this.text.value = "";
    this.keep();
    await this.answer();
  }

  waiting(is) {
    this.send.hidden = is;
    this.stop.hidden = !is;
  }

  async answer() {
    this.log.querySelectorAll(".notice").forEach(one => one.remove());
    const { message, words } = this.add("assistant", "");
    const controller = this.controller = new AbortController(), conversation = this.messages;
    const began = performance.now();
    let written = "", usage, broken, drawing;
    message.classList.add("writing");
    this.waiting(true);
    const show = () => {
      drawing = undefined;
      const follows = this.log.scrollHeight - this.log.scrollTop - this.log.clientHeight < 80;
      write(words, "assistant", written);
      if (follows) this.log.scrollTop = this.log.scrollHeight;
    };
    try {
      const answer = await inference("POST", "/v1/chat/completions", { body: this.body(), signal: controller.signal, timeout: thinking });
      for await (const { data } of events(answer, thinking)) {
        if (data === "[DONE]") break;
        const chunk = JSON.parse(data);
        if (chunk.error) throw new Refusal(502, chunk.error.message);
        usage = chunk.usage || usage;
        const delta = chunk.choices?.[0]?.delta || {};
        if (delta.reasoning_content && !written) words.textContent = "Thinking …";
        if (!delta.content) continue;
        written += delta.content;
        drawing ??= requestAnimationFrame(show);
      }
    } catch (failure) {
      broken = failure;
    }
    cancelAnimationFrame(drawing);
    if (written) show();
    message.classList.remove("writing");
    if (conversation !== this.messages) return; // the user has opened another conversation in the meantime
    this.controller = undefined;
    this.waiting(false);
    this.close({ message, written, usage, broken, stopped: controller.signal.aborted, took: (performance.now() - began) / 1000 });
  }

  close({ message, written, usage, broken, stopped, took }) {
    if (written) {
      this.messages.push({ role: "assistant", content: written });
      this.keep();
    } else message.remove();
    if (usage) {
      this.total += usage.total_tokens;
      this.used.textContent = `${number(this.total)} tokens used in this tab.`;
      message.append(make("p", { class: "figures" }, `${number(usage.prompt_tokens)} in · ${number(usage.completion_tokens)} out · ${took.toFixed(1)} s`));
    } else if (stopped) message.append(make("p", { class: "figures" }, "Stopped. The service counts the tokens used so far."));
    if (broken && !stopped) {
      this.complain(broken.status === undefined ? new Refusal(0, written ? "The response was interrupted." : unreachable) : broken, written ? undefined : () => this.answer());
    } else say(stopped ? "Stopped." : "The response is complete.");
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

// A model's text is rendered as Markdown. The user's own text is not.
function write(place, role, text) {
  place.replaceChildren(...role === "assistant" ? render(text) : [text]);
}
