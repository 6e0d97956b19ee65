// A browser's tabs tell each other which list has changed, such as "jobs", without its contents.

const channel = typeof BroadcastChannel === "function" ? new BroadcastChannel("cutroom") : undefined;
const all = []; // {what, listener, pace, at}
const tick = 2000; // milliseconds between checks of the timed listeners

export const publish = what => channel?.postMessage(what);

// subscribe calls a function when another tab has changed something, and when this tab becomes visible again, because
// programs also make changes. While the tab is visible, it is also called every pace() seconds, unless that is 0.
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
