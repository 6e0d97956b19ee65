// Tells users that an edit has ended: in the tab's title, and if they want, by a system notification.

import { toast } from "./dom.js";

const wantedName = "cutroom-notify";
const known = typeof Notification === "function";
let before; // the tab's title before the first announcement

export const canNotify = known;

export const notifies = () => known && Notification.permission === "granted" && localStorage.getItem(wantedName) === "yes";

// choose turns notifications on or off. The first time, the browser asks the user.
export async function choose(on) {
  if (on && Notification.permission !== "granted" && await Notification.requestPermission() !== "granted") {
    toast("The browser does not allow notifications from this page. Check its settings for this site.");
    return;
  }
  localStorage.setItem(wantedName, on ? "yes" : "no");
  toast(on ? "You will be notified when an edit ends while this page is hidden." : "Notifications are off.");
}

// announce tells the user that a run has ended, if the tab is hidden.
export function announce(run) {
  if (!document.hidden) return;
  const words = run.phase === "done" ? run.words() : "Failed";
  before ??= document.title;
  document.title = `${words}: ${run.prompt || run.model?.id || "an edit"}`;
  if (!notifies()) return;
  const shown = new Notification(run.phase === "done" ? "Your edit has finished" : "An edit failed", { body: run.prompt || run.problem?.why || "", tag: run.id, icon: "icon.svg" });
  shown.onclick = () => {
    window.focus();
    shown.close();
  };
}

document.addEventListener("visibilitychange", () => {
  if (document.hidden || before === undefined) return;
  document.title = before;
  before = undefined;
});
