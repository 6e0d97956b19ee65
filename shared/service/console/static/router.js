// Addresses of views within the console: #page/part/part?name=value. Every view has its own address, so it can be
// bookmarked, shared and revisited.

export function where() {
  const [path, query = ""] = location.hash.slice(1).split("?");
  const [page, ...parts] = path.split("/").map(part => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  });
  return { page, parts, query: new URLSearchParams(query) };
}

// address returns the address of a view. Empty query parameters are omitted.
export function address(page, parts = [], query = {}) {
  const values = new URLSearchParams(Object.entries(query).filter(([, value]) => value));
  return `#${[page, ...parts].map(encodeURIComponent).join("/").replaceAll("%2C", ",")}${values.size ? `?${values}` : ""}`;
}

// visit opens a view. The back button returns to the previous one.
export function visit(page, parts, query) {
  location.hash = address(page, parts, query);
}

let known; // the address of the view that is shown

// arrived reports whether the address now belongs to another view, and remembers that this view is shown.
export function arrived() {
  const news = location.hash !== known;
  known = location.hash;
  return news;
}

// settle changes the address of the current view without a new entry in the browser's history.
export function settle(page, parts, query) {
  const wanted = address(page, parts, query);
  if (wanted !== location.hash) history.replaceState(history.state, "", wanted);
  known = location.hash;
}

// pass changes the address of the current view and adds an entry to the browser's history.
export function pass(page, parts, query) {
  const wanted = address(page, parts, query);
  if (wanted !== location.hash) history.pushState(history.state, "", wanted);
  known = location.hash;
}
