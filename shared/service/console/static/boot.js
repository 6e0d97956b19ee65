"use strict";
// Code that must run before the console is loaded: the chosen color scheme, and a retry if a
// file of the page fails to load. A module runs only with all of its imports, and browsers abort
// all fetches when the network changes, even on loopback, so this code is inline in the document.
{
  const tries = "cutroom-loads", quiet = 3, slow = 10_000, stuck = 45_000, longest = 15_000;
  let started = false, bare = false, waits;

  // Storage throws if the browser is configured not to keep data.
  const keep = act => {
    try {
      return act();
    } catch {
      return undefined;
    }
  };

  const chosen = keep(() => localStorage.getItem("cutroom-scheme"));
  if (chosen) document.documentElement.dataset.theme = chosen;

  const showMessage = text => {
    const place = document.getElementById("app");
    if (!place || started) return;
    const words = document.createElement("p"), again = document.createElement("button");
    words.className = "loading slow";
    words.setAttribute("role", "alert");
    words.textContent = text + " ";
    again.type = "button";
    again.textContent = "Try again";
    again.addEventListener("click", () => {
      keep(() => sessionStorage.removeItem(tries));
      location.reload();
    });
    words.append(again);
    place.replaceChildren(words);
  };

  const retry = () => {
    if (started || waits) return;
    const count = keep(() => +sessionStorage.getItem(tries)) ?? quiet;
    keep(() => sessionStorage.setItem(tries, count + 1));
    if (count >= quiet) showMessage("The console could not be loaded. Retrying.");
    waits = setTimeout(() => location.reload(), Math.min(longest, 400 * 2 ** count));
  };
  addEventListener("online", () => waits && location.reload());

  // Load errors do not bubble, so capture them.
  addEventListener("error", event => {
    const lost = event.target;
    if (lost instanceof HTMLLinkElement && lost.rel === "stylesheet") bare = true;
    if (lost instanceof HTMLScriptElement || lost instanceof HTMLLinkElement) retry();
  }, true);
  const timers = [setTimeout(() => showMessage("The console is taking longer than usual to load."), slow), setTimeout(retry, stuck)];
  addEventListener("cutroom-started", () => {
    started = true;
    timers.forEach(clearTimeout);
    if (bare) return; // a page without its style is reloaded anyway
    clearTimeout(waits);
    keep(() => sessionStorage.removeItem(tries));
  });
}
