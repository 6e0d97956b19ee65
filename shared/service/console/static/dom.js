// Functions that create elements, and others that all pages share.

// make creates an element. The property "on" holds event listeners by event name. A property that is true becomes an
// attribute without a value. Properties that are false, null or undefined are omitted.
export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === false || value === null || value === undefined) continue;
    if (name === "on") for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    else if (name === "value") element.value = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter(child => child !== undefined && child !== null && child !== false));
  return element;
}

const drawing = "http://www.w3.org/2000/svg";

export function draw(tag, properties = {}, ...children) {
  const element = document.createElementNS(drawing, tag);
  for (const [name, value] of Object.entries(properties)) element.setAttribute(name, value);
  element.append(...children.flat());
  return element;
}

const outlines = {
  edit: "M4 5h16v14H4zM4 9h16M8 5v4M16 5v4M10.5 12l4 2.2-4 2.3z",
  files: "M4 6.5A1.5 1.5 0 0 1 5.5 5H10l2 2.5h6.5A1.5 1.5 0 0 1 20 9v8.5a1.5 1.5 0 0 1-1.5 1.5h-13A1.5 1.5 0 0 1 4 17.5z",
  chat: "M5 5h14a1 1 0 0 1 1 1v9a1 1 0 0 1-1 1h-7l-4.5 3.5V16H5a1 1 0 0 1-1-1V6a1 1 0 0 1 1-1zM8 9h8M8 12h5",
  realtime: "M12 13.5a1.5 1.5 0 1 0 0-3 1.5 1.5 0 0 0 0 3zM8.1 15.9a5.5 5.5 0 0 1 0-7.8M15.9 8.1a5.5 5.5 0 0 1 0 7.8M5.3 18.7a9.5 9.5 0 0 1 0-13.4M18.7 5.3a9.5 9.5 0 0 1 0 13.4",
  usage: "M5 19v-7M10 19V6M15 19v-9M20 19V4M3.5 19.5h18",
  keys: "M8 16.5a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM12 12.5h9M18 12.5v3.5M15 12.5v2.5",
  docs: "M6 4h8l4 4v12H6zM14 4v4h4M9 12h6M9 15.5h6",
  scheme: "M12 4a8 8 0 1 0 0 16zM12 4a8 8 0 0 1 0 16",
  leave: "M10 5H5v14h5M14 8l4 4-4 4M9 12h9",
  film: "M4 5h16v14H4zM8 5v14M16 5v14M4 9.7h4M4 14.3h4M16 9.7h4M16 14.3h4",
  image: "M4 5h16v14H4zM4 16l4.5-4.5 4 4 2.5-2.5 5 5M15 9.5h.1",
  words: "M5 6h14M5 10.5h14M5 15h8M16 17l2 2 3.5-4",
  play: "M8 5.5v13l10.5-6.5z",
  pause: "M8.5 5.5v13M15.5 5.5v13",
  sound: "M4 10v4h3.5l4.5 4V6L7.5 10zM15.5 9a4 4 0 0 1 0 6M18 6.5a7.5 7.5 0 0 1 0 11",
  mute: "M4 10v4h3.5l4.5 4V6L7.5 10zM16 10l4.5 4.5M20.5 10L16 14.5",
  download: "M12 4v11M7.5 11l4.5 4.5 4.5-4.5M5 19.5h14",
  again: "M19 12a7 7 0 1 1-2.2-5.1M19.5 4v4h-4",
  copy: "M9 9h10v11H9zM5 15V4h10",
  close: "M6 6l12 12M18 6L6 18",
  bin: "M5 7h14M10 7V4.5h4V7M7 7l.8 12.5h8.4L17 7M10.5 11v5M13.5 11v5",
  add: "M12 5v14M5 12h14",
  arrow: "M5 12h14M13 6l6 6-6 6",
  dice: "M5 5h14v14H5zM9 9h.1M15 15h.1M12 12h.1M15 9h.1M9 15h.1",
  left: "M9 7l-5 5 5 5M15 7l5 5-5 5",
  gallery: "M4 4.5h7v7H4zM13 4.5h7v7h-7zM4 13.5h7v6H4zM13 13.5h7v6h-7z",
  compare: "M4 5h7v14H4zM13 5h7v14h-7z",
  back: "M19 12H5M11 6l-6 6 6 6",
  check: "M5 12.5l4.5 4.5L19 7.5",
  info: "M12 3.5a8.5 8.5 0 1 0 0 17 8.5 8.5 0 0 0 0-17zM12 11v5M12 8h.1",
  alert: "M12 4l9 15.5H3zM12 10v4M12 16.8h.1",
  settings: "M5 7h8M17 7h2M13 7a2 2 0 1 0 4 0 2 2 0 0 0-4 0M5 16h2M11 16h8M7 16a2 2 0 1 0 4 0 2 2 0 0 0-4 0",
  share: "M12 14V4M8 7.5L12 4l4 3.5M6 11v8.5h12V11",
  bell: "M7 16.5V11a5 5 0 0 1 10 0v5.5l1.5 1.5h-13zM10.5 20.5h3",
  looks: "M12 4a8 8 0 1 0 0 16c1.5 0 1.8-1 1.3-2-.8-1.6.3-3 2-3H18a2 2 0 0 0 2-2c0-5-3.6-9-8-9zM8 10.5h.1M12 8h.1M16 10.5h.1",
  cut: "M6.5 8.5a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM6.5 19.5a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM8.2 7.8L19 17M8.2 16.2L19 7",
  full: "M4 9V4h5M20 9V4h-5M4 15v5h5M20 15v5h-5",
  seal: "M12 3.5l7 2.5v5c0 4.5-3 7.8-7 9.5-4-1.7-7-5-7-9.5V6zM8.8 12l2.3 2.3 4.2-4.6",
  pen: "M5 19l1-4L16 5l3 3L9 18z",
};

// icon returns an icon that screen readers ignore, so the text next to it or a label must give its meaning.
export function icon(name) {
  return draw("svg", { viewBox: "0 0 24 24", class: "icon", "aria-hidden": "true" }, draw("path", { d: outlines[name] }));
}

export function button(sign, words, press, properties = {}) {
  return make("button", { type: "button", on: { click: press }, ...properties }, sign && icon(sign), make("span", {}, words));
}

export function signButton(sign, words, press, properties = {}) {
  return make("button", { type: "button", class: "sign", "aria-label": words, title: words, on: { click: press }, ...properties }, icon(sign));
}

// save downloads a blob as a file.
export function save(blob, name) {
  const url = URL.createObjectURL(blob);
  make("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

// say makes screen readers read a text aloud.
export function say(text) {
  document.getElementById("said").textContent = text;
}

export function toast(text) {
  const shown = make("p", {}, text);
  document.getElementById("toasts").replaceChildren(shown);
  setTimeout(() => shown.remove(), 4000);
}

export async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
    toast(`${what} copied.`);
  } catch {
    toast("The browser does not allow this page to copy. Select the text instead.");
  }
}

// confirm asks the user before an irreversible action, and resolves to whether the user agreed.
export function confirm(title, text, yes) {
  return new Promise(resolve => {
    const dialog = make("dialog", { class: "dialog", "aria-labelledby": "dialog-title" },
      make("h2", { id: "dialog-title" }, title), make("p", {}, text),
      make("form", { method: "dialog", class: "row end" },
        make("button", { value: "no" }, "Keep"), make("button", { value: "yes", class: "danger" }, yes)));
    dialog.addEventListener("close", () => {
      resolve(dialog.returnValue === "yes");
      dialog.remove();
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}

const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
const narrow = new Intl.RelativeTimeFormat("en", { style: "narrow" });

// ago describes how long ago a time was. The other format is shorter, for narrow spaces.
export function ago(time, format = relative) {
  const seconds = (new Date(time) - Date.now()) / 1000;
  for (const [unit, length, next] of [["second", 1, 60], ["minute", 60, 60], ["hour", 3600, 24], ["day", 86400, Infinity]]) {
    const count = Math.round(seconds / length);
    if (Math.abs(count) < next) return unit === "second" && Math.abs(count) < 5 ? "now" : format.format(count, unit);
  }
}

export const shortAgo = time => ago(time, narrow);

// age updates all relative times on the page.
export const since = time => make("time", { datetime: time, title: new Date(time).toLocaleString() }, ago(time));

export const age = () => document.querySelectorAll("time").forEach(one => { one.textContent = ago(one.dateTime); });

// arrange makes items the children of a list. Items that are already there are not touched, so that they keep the
// focus and videos go on playing.
export function arrange(list, items) {
  const wanted = new Set(items);
  for (const item of [...list.children]) if (!wanted.has(item)) item.remove();
  items.forEach((item, i) => list.children[i] === item || list.insertBefore(item, list.children[i] || null));
}

export function bytes(count) {
  if (count < 1000) return `${count} bytes`;
  const unit = count < 1e6 ? ["kB", 1e3] : count < 1e9 ? ["MB", 1e6] : ["GB", 1e9];
  return `${(count / unit[1]).toFixed(count / unit[1] < 10 ? 1 : 0)} ${unit[0]}`;
}

const plain = new Intl.NumberFormat("en");
export const number = value => plain.format(value);
