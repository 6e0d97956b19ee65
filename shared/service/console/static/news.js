// Tells the browser's other tabs that a list has changed, such as "jobs". The contents are not sent.

const channel = typeof BroadcastChannel === "function" ? new BroadcastChannel("cutroom") : undefined;
const all = []; // {what, listener, pace, at}
const tick = 2000; // how often to check whether a listener's pace has elapsed, in milliseconds

export const publish = what => channel?.postMessage(what);

// subscribe calls the listener when another tab has changed something. Other programs make changes too, so it also
// calls the listener when this tab becomes visible again, and every pace() seconds while the tab is visible, unless
// that is 0.
export function subscribe(what, listener, pace = () => 0) {
  all.push({ what, listener, pace, at: Date.now() });
}

function call(wanted) {
  for (const one of all.filter(wanted)) {
    one.at = Date.now();
    one.listener();
  }
}

channel?.addEventListener("message", ({ data }) => call(one => one.what === data));
document.addEventListener("visibilitychange", () => document.hidden || call(() => true));
setInterval(() => document.hidden || call(one => {
  const pace = one.pace();
  return pace > 0 && Date.now() - one.at >= pace * 1000;
}), tick);
