// The key in the tabs of one browser. It is kept in each tab alone; a tab that is new
// asks the others for it, and all of them hear when somebody signs in or out. Nothing
// of it outlives the last tab.

const channel = typeof BroadcastChannel === "function" ? new BroadcastChannel("cutroom-key") : undefined;
const own = crypto.getRandomValues(new Uint32Array(2)).join("-");

// join asks the other tabs for a key, and takes part in what they say: key() returns
// this tab's key, "" if it has none to give; offered(key) is called with one that
// another tab has, entered(key) with one that was signed in with in another tab, and
// left() when somebody has signed out.
export function join({ key, offered, entered, left }) {
  channel?.addEventListener("message", ({ data: { asks, to, has, leaves } }) => {
    if (asks && key()) channel.postMessage({ to: asks, has: key() });
    else if (to === own && has) offered(has);
    else if (!to && has) entered(has);
    else if (leaves) left();
  });
  channel?.postMessage({ asks: own });
}

// entered tells the other tabs which key was signed in with, and left that somebody has
// signed out.
export const entered = key => channel?.postMessage({ has: key });
export const left = () => channel?.postMessage({ leaves: true });
