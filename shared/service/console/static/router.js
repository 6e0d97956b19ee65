// Addresses within the console: #page/part/part?name=value. Every view has one, so that it can be
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

// Empty query parameters are omitted.
export function address(page, parts = [], query = {}) {
  const values = new URLSearchParams(Object.entries(query).filter(([, value]) => value));
  return `#${[page, ...parts].map(encodeURIComponent).join("/").replaceAll("%2C", ",")}${values.size ? `?${values}` : ""}`;
}

// The back button leaves the view again.
export function visit(page, parts, query) {
  location.hash = address(page, parts, query);
}

let known; // the address whose view is shown

// arrived reports whether the address belongs to a view other than the shown one, and records it as shown.
export function arrived() {
  const news = location.hash !== known;
  known = location.hash;
  return news;
}

// settle changes the address of the shown view without adding a step to the browser's history.
export function settle(page, parts, query) {
  const wanted = address(page, parts, query);
  if (wanted !== location.hash) history.replaceState(history.state, "", wanted);
  known = location.hash;
}

// pass adds a step to the browser's history for the view that is already shown.
export function pass(page, parts, query) {
  const wanted = address(page, parts, query);
  if (wanted !== location.hash) history.pushState(history.state, "", wanted);
  known = location.hash;
}
