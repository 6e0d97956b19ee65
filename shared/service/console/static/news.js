// Tells the browser's other tabs that a list has changed, such as "jobs". The contents are not sent.

const channel = typeof BroadcastChannel === "function" ? new BroadcastChannel("cutroom") : undefined;
const all = []; // {what, listener, pace, at}
const tick = 2000; // how often to check whether a listener's pace has elapsed, in milliseconds

export const publish = what => channel?.postMessage(what);

// subscribe calls a function when another tab has changed something. It also does so when this tab becomes visible
// again, and while it is visible every pace() seconds unless that is 0, because other programs make changes too.
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
