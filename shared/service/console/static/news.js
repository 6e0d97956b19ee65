// News between the tabs of a browser, so that none of them is stale: what was
// changed, such as "jobs", and nothing of what is in it.

const channel = typeof BroadcastChannel === "function" ? new BroadcastChannel("cutroom") : undefined;
const listeners = new Map(); // functions by the name of what has changed

// tell tells the other tabs that something has changed.
export const tell = what => channel?.postMessage(what);

// hear calls a function when another tab has changed something, and when this tab is
// looked at again, as programs change things as well.
export function hear(what, listener) {
  if (!listeners.has(what)) listeners.set(what, []);
  listeners.get(what).push(listener);
}

channel?.addEventListener("message", ({ data }) => listeners.get(data)?.forEach(listener => listener()));
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) listeners.forEach(all => all.forEach(listener => listener()));
});
