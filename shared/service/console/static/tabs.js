// The key in the tabs of one browser. Only tabs store it. A new tab asks the others for it, and
// logins and logouts are sent to all. The key is lost when the last tab is closed.

const channel = typeof BroadcastChannel === "function" ? new BroadcastChannel("cutroom-key") : undefined;
const own = crypto.getRandomValues(new Uint32Array(2)).join("-");

// join asks the other tabs for a key, and listens to them. key() returns this tab's key, or "". offered(key) is
// called with another tab's key, entered(key) after a login in another tab, and left() after a logout.
export function join({ key, offered, entered, left }) {
  channel?.addEventListener("message", ({ data: { asks, to, has, leaves } }) => {
    if (asks && key()) channel.postMessage({ to: asks, has: key() });
    else if (to === own && has) offered(has);
    else if (!to && has) entered(has);
    else if (leaves) left();
  });
  channel?.postMessage({ asks: own });
}

export const entered = key => channel?.postMessage({ has: key });
export const left = () => channel?.postMessage({ leaves: true });
