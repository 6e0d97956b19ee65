// Starts the console: signing in, its pages, and the navigation between them.

import { age, button, draw, icon, make, say, signButton, toast } from "./dom.js";
import { arrived, where } from "./router.js";
import { admin, configure, dropKey, forget, key, keep, learnRole, media, Refusal, settings, whenKeyIsRefused } from "./service.js";
import { chatPage } from "./chat.js";
import { comparePage } from "./side.js";
import { editPage, underway } from "./edit.js";
import { filesPage } from "./files.js";
import { jobsPage } from "./gallery.js";
import { later } from "./later.js";
import { looksPage } from "./looks.js";
import { realtimePage } from "./realtime.js";
import { entered as tellEntered, join, left as tellLeft } from "./tabs.js";
import { release } from "./upload.js";
import { clear } from "./vault.js";

// A page has an id (the first part of its address), a title, an icon, and open(view), which fills the page once. open
// may return an object with shown(place), which is called whenever the user visits an address of the page, and with
// left(). "admin" pages require an admin key. "within" is the id of the page from which the page is reached. "look"
// is the name of its style, if that is not the id.
const allPages = [
  editPage, looksPage, jobsPage, comparePage, filesPage, chatPage, realtimePage,
  later({ id: "usage", title: "Usage", sign: "usage" }, () => import("./usage.js")),
  later({ id: "budgets", title: "Budgets", within: "usage", sign: "usage", admin: true }, () => import("./budgets.js")),
  later({ id: "keys", title: "Keys", sign: "keys", admin: true }, () => import("./keys.js")),
  later({ id: "audit", title: "Audit", within: "keys", sign: "keys", admin: true }, () => import("./audit.js")),
];

const app = document.getElementById("app");

const brand = () => make("a", { class: "brand", href: "#edit" },
  draw("svg", { viewBox: "0 0 16 16", "aria-hidden": "true" }, draw("rect", { width: 16, height: 16, rx: 4 }), draw("path", { d: "M5 4.5v7l6.5-3.5z" })), "Cutroom");

// check accepts a key even if the key does not allow all calls that the console makes.
async function check(candidate) {
  if (candidate.startsWith("ek_")) throw new Refusal(403, "This is a client token for apps. Sign in with a permanent key (ck_…).");
  if (!candidate.startsWith("ck_")) throw new Refusal(401, "This is not a key of this service, because keys start with ck_.");
  try {
    await media("GET", "/v1/files?limit=1", { key: candidate, timeout: 30_000 });
  } catch (refusal) {
    if (refusal.status !== 403) throw refusal;
  }
}

let askedFor; // the input for the key, while the login form is open

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
      tellEntered(candidate);
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
      make("p", { class: "lead" }, "Video, images, chat and live pictures, on your own models."),
      make("form", { on: { submit } },
        make("label", { for: "key" }, "API key"), field, problem, enter,
        make("p", { id: "key-note", class: "note" }, "The key stays in the open tabs of this browser and is forgotten when you close them. ",
          settings.docs_url && make("a", { href: settings.docs_url }, "API docs")))),
    make("img", { class: "hero", src: "hero.svg", alt: "" })));
  askedFor = field;
  field.focus();
}

function showTrouble(text) {
  app.replaceChildren(make("main", { id: "view", class: "trouble" }, brand(),
    make("p", { class: "notice", role: "alert" }, make("span", {}, text), button("again", "Try again", begin),
      key() && button("leave", "Sign out", signOut))));
}

async function signOut() {
  if (underway() && !confirmLeaving()) return;
  tellLeft();
  await forgetAll();
}

// forgetAll forgets the key and clears all displayed data.
async function forgetAll() {
  go = undefined;
  forget(); // now, because other tabs may ask for the key
  release();
  app.replaceChildren(); // so that removed elements no longer store anything
  await clear();
  forget();
  history.replaceState(null, "", location.pathname);
  location.reload();
}

const confirmLeaving = () => window.confirm("An upload is in progress and would be lost. Sign out?");

// askForKey offers to sign in again, if the service no longer accepts the key. The current page does not change.
function askForKey() {
  if (document.querySelector(".refused-key")) return;
  const again = button("keys", "Sign in again", () => {
    dropKey();
    location.reload();
  }, { class: "primary" });
  tellOfKey("The service no longer accepts this tab's key. It was revoked or belongs to another service.", again);
}

const tellOfKey = (words, ...buttons) => document.body.append(make("div", { class: "refused-key", role: "alert" }, make("p", {}, words), buttons));

let offeredEarly; // a key that another tab offered before this tab was ready

// takeOffered signs in with another tab's key, unless the user is entering a key here.
async function takeOffered(offered) {
  if (!settings) offeredEarly = offered;
  if (!settings || key() || !askedFor?.isConnected || askedFor.value) return;
  try {
    await check(offered);
  } catch {
    return; // this tab needs a key
  }
  if (key() || askedFor.value) return;
  keep(offered);
  await showConsole();
}

// takeEntered signs in with the key that was entered in another tab. It does not interrupt an upload.
function takeEntered(entered) {
  if (!key()) return takeOffered(entered);
  if (entered === key()) return undefined;
  const take = () => {
    release();
    keep(entered);
    location.reload();
  };
  if (!underway()) return take();
  document.querySelector(".refused-key")?.remove();
  return tellOfKey("Another tab has signed in with another key. An upload is in progress here and would be lost.", button("keys", "Use that key here", take));
}

join({
  key: () => document.querySelector(".refused-key") ? "" : key(),
  offered: takeOffered, entered: takeEntered, left: () => key() && forgetAll(),
});

const schemes = ["", "light", "dark"], schemeName = "cutroom-scheme";

// schemeButton switches between the system's, the light and the dark color scheme.
function schemeButton() {
  const root = document.documentElement;
  const words = () => `Scheme: ${root.dataset.theme || "as the system's"}`;
  const press = () => {
    const next = schemes[(schemes.indexOf(root.dataset.theme || "") + 1) % schemes.length];
    if (next) root.dataset.theme = next;
    else delete root.dataset.theme;
    if (next) localStorage.setItem(schemeName, next);
    else localStorage.removeItem(schemeName);
    toggle.setAttribute("aria-label", words());
    toggle.title = words();
    toast(words());
  };
  const toggle = signButton("scheme", words(), press, { id: "scheme" });
  return toggle;
}

setInterval(age, 20_000);
addEventListener("storage", ({ key: name, newValue }) => {
  if (name !== schemeName) return;
  if (newValue) document.documentElement.dataset.theme = newValue;
  else delete document.documentElement.dataset.theme;
});

let go; // opens the page that the address names
addEventListener("hashchange", () => go?.());
addEventListener("popstate", () => go?.());

async function showConsole() {
  await learnRole();
  const pages = allPages.filter(page => admin || !page.admin);
  const view = make("main", { id: "view", tabindex: "-1" });
  const listed = pages.filter(page => !page.within);
  const links = listed.map(page => make("a", { href: `#${page.id}` }, icon(page.sign), make("span", {}, page.title)));
  app.replaceChildren(
    make("aside", { class: "rail" },
      brand(),
      make("nav", { "aria-label": "Pages" }, links),
      make("div", { class: "rail-foot" },
        settings.docs_url && make("a", { class: "sign", href: settings.docs_url, "aria-label": "API docs", title: "API docs" }, icon("docs")),
        schemeButton(), signButton("leave", "Sign out", signOut, { id: "sign-out" }))),
    view);

  whenKeyIsRefused(askForKey);
  arrived();
  const opened = new Map();
  let current;
  const open = () => {
    const place = where();
    const page = pages.find(page => page.id === place.page) || pages.find(page => page.title.toLowerCase() === place.page) || pages[0];
    const turned = page !== current;
    if (turned) {
      opened.get(current)?.life?.left?.();
      for (const dialog of document.querySelectorAll("dialog[open]")) dialog.close(); // belongs to the page that opened it
    }
    if (!opened.has(page)) {
      const section = make("section", { class: `page ${page.look || page.id}`, "aria-labelledby": `title-${page.id}` });
      section.append(make("h1", { id: `title-${page.id}`, class: page.quiet ? "unseen" : "" }, page.title));
      view.append(section);
      opened.set(page, { section, life: page.open(section) });
    }
    for (const [other, { section }] of opened) section.hidden = other !== page;
    listed.forEach((one, i) => one.id === (page.within || page.id) ? links[i].setAttribute("aria-current", "page") : links[i].removeAttribute("aria-current"));
    document.title = `${page.title} – Cutroom`;
    document.body.dataset.page = page.id;
    if (current && turned) {
      view.focus({ preventScroll: true });
      scrollTo(0, 0);
      say(page.title);
    }
    current = page;
    opened.get(page).life?.shown?.(page.id === place.page ? place : { page: page.id, parts: [], query: new URLSearchParams() });
  };
  go = () => where().page !== "view" && arrived() && open(); // #view is the target of the skip link
  open();
}

async function begin() {
  try {
    await configure();
  } catch {
    return showTrouble("The console's settings are invalid.");
  } finally {
    dispatchEvent(new Event("cutroom-started"));
  }
  if (!key() && offeredEarly) keep(offeredEarly);
  if (!key()) return showSignIn();
  try {
    await check(key());
    await showConsole();
  } catch (refusal) {
    // For other errors, the key is not to blame.
    if (refusal.status !== 401 && refusal.status !== 403) return showTrouble(refusal.message);
    dropKey();
    showSignIn(refusal.message);
  }
}

begin();
