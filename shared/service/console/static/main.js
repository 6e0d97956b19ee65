// The console: signing in, the pages, and moving between them.

import { button, draw, icon, make, say, signButton, toast } from "./dom.js";
import { configure, forget, key, keep, media, Refusal, settings } from "./service.js";
import { chatPage } from "./chat.js";
import { editPage } from "./edit.js";
import { filesPage } from "./files.js";
import { keysPage, mayKeepKeys } from "./keys.js";
import { realtimePage } from "./realtime.js";
import { usagePage } from "./usage.js";

// A page has an id, which is its address, a title, an icon, and open(view), which
// fills it once. What open returns, if anything, has shown() and left(), called for
// each visit. Pages marked admin require an admin key.
const allPages = [editPage, filesPage, chatPage, realtimePage, usagePage, keysPage];

const app = document.getElementById("app");

const brand = () => make("a", { class: "brand", href: "#edit" },
  draw("svg", { viewBox: "0 0 16 16", "aria-hidden": "true" }, draw("rect", { width: 16, height: 16, rx: 4 }), draw("path", { d: "M5 4.5v7l6.5-3.5z" })), "Cutroom");

// check makes a cheap call that shows whether a key can sign in.
async function check(candidate) {
  if (candidate.startsWith("ek_")) throw new Refusal(403, "This is a client token, which is for apps. Sign in with a permanent key (ck_…).");
  if (!candidate.startsWith("ck_")) throw new Refusal(401, "This is no key of this service: keys begin with ck_.");
  await media("GET", "/v1/files?limit=1", { key: candidate });
}

function showSignIn(why = "") {
  const problem = make("p", { id: "key-problem", class: "notice", role: "alert", hidden: !why }, why);
  const field = make("input", { id: "key", type: "password", autocomplete: "off", spellcheck: "false", autocapitalize: "off", placeholder: "ck_…", required: true, "aria-describedby": "key-note key-problem" });
  const enter = make("button", { class: "primary wide" }, "Sign in");
  const submit = async event => {
    event.preventDefault();
    const candidate = field.value.trim();
    enter.disabled = true;
    problem.hidden = true;
    try {
      await check(candidate);
      keep(candidate);
      await showConsole();
    } catch (refusal) {
      problem.textContent = refusal.message;
      problem.hidden = false;
      field.setAttribute("aria-invalid", "true");
      field.select();
    }
    enter.disabled = false;
  };
  document.title = "Sign in – Cutroom";
  document.body.dataset.page = "sign-in";
  app.replaceChildren(make("main", { id: "view", class: "entrance" },
    make("section", { class: "welcome" },
      brand(),
      make("h1", {}, "Edit media with words."),
      make("p", { class: "lead" }, "Video, images, chat and live pictures, on models of your own."),
      make("form", { on: { submit } },
        make("label", { for: "key" }, "API key"), field, problem, enter,
        make("p", { id: "key-note", class: "note" }, "The key stays in this tab and is forgotten when you close it. ",
          settings.docs_url && make("a", { href: settings.docs_url }, "API docs")))),
    make("img", { class: "hero", src: "hero.svg", alt: "" })));
  field.focus();
}

function signOut() {
  forget();
  location.hash = "";
  location.reload();
}

const schemes = ["", "light", "dark"];

// schemeButton cycles through the system's, the light and the dark colour scheme.
function schemeButton() {
  const root = document.documentElement;
  const words = () => `Scheme: ${root.dataset.theme || "as the system's"}`;
  const press = () => {
    const next = schemes[(schemes.indexOf(root.dataset.theme || "") + 1) % schemes.length];
    if (next) root.dataset.theme = next;
    else delete root.dataset.theme;
    if (next) localStorage.setItem("cutroom-scheme", next);
    else localStorage.removeItem("cutroom-scheme");
    toggle.setAttribute("aria-label", words());
    toggle.title = words();
    toast(words());
  };
  const toggle = signButton("scheme", words(), press, { id: "scheme" });
  return toggle;
}

async function showConsole() {
  const pages = await mayKeepKeys() ? allPages : allPages.filter(page => !page.admin);
  const view = make("main", { id: "view", tabindex: "-1" });
  const links = pages.map(page => make("a", { href: `#${page.id}` }, icon(page.sign), make("span", {}, page.title)));
  app.replaceChildren(
    make("aside", { class: "rail" },
      brand(),
      make("nav", { "aria-label": "Pages" }, links),
      make("div", { class: "rail-foot" },
        settings.docs_url && make("a", { class: "sign", href: settings.docs_url, "aria-label": "API docs", title: "API docs" }, icon("docs")),
        schemeButton(), signButton("leave", "Sign out", signOut, { id: "sign-out" }))),
    view);

  const opened = new Map();
  let current;
  const go = () => {
    const [id] = location.hash.slice(1).split("/");
    if (id === "view") return; // the link that skips to the content
    const page = pages.find(page => page.id === id) || pages[0];
    if (page === current) return;
    opened.get(current)?.life?.left?.();
    if (!opened.has(page)) {
      const section = make("section", { class: `page ${page.id}`, "aria-labelledby": `title-${page.id}` });
      section.append(make("h1", { id: `title-${page.id}`, class: page.quiet ? "unseen" : "" }, page.title));
      view.append(section);
      opened.set(page, { section, life: page.open(section) });
    }
    for (const [other, { section }] of opened) section.hidden = other !== page;
    links.forEach((link, i) => pages[i] === page ? link.setAttribute("aria-current", "page") : link.removeAttribute("aria-current"));
    document.title = `${page.title} – Cutroom`;
    document.body.dataset.page = page.id;
    if (current) {
      view.focus({ preventScroll: true });
      scrollTo(0, 0);
      say(page.title);
    }
    current = page;
    opened.get(page).life?.shown?.();
  };
  addEventListener("hashchange", go);
  go();
}

try {
  await configure();
  if (!key()) showSignIn();
  else {
    try {
      await check(key());
      await showConsole();
    } catch (refusal) {
      if (refusal.status === 401 || refusal.status === 403) forget();
      showSignIn(refusal.message);
    }
  }
} catch {
  app.replaceChildren(make("p", { class: "notice", role: "alert" }, "The console's settings cannot be read. ", button("again", "Try again", () => location.reload())));
}
