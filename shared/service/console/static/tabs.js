// Shares the key between the browser's tabs. Only tabs store it. A new tab asks the others for it, and every tab
// learns of logins and logouts. When the last tab is closed, the key is gone.

const channel = typeof BroadcastChannel === "function" ? new BroadcastChannel("cutroom-key") : undefined;
const own = crypto.getRandomValues(new Uint32Array(2)).join("-");

// join asks the other tabs for a key and listens to them. key() returns this tab's key, or "". offered(key) is called
// when another tab sends its key, entered(key) after a login in another tab, and left() after a logout.
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
