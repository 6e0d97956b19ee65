"use strict";
// This code must run before the console is loaded. It sets the chosen color scheme, and loads files of the page again
// if that fails. It is inline in the document, because a module runs only if all of its imports have loaded, and
// browsers abort all requests when the network changes, even requests to localhost.
{
  const tries = "cutroom-loads", quiet = 3, slow = 10_000, stuck = 45_000, longest = 15_000;
  let started = false, bare = false, waits;

  // keep calls act, and ignores errors: storage throws if the browser is configured not to store data.
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

  // Listen in the capture phase, because load errors do not bubble.
  addEventListener("error", event => {
    const lost = event.target;
    if (lost instanceof HTMLLinkElement && lost.rel === "stylesheet") bare = true;
    if (lost instanceof HTMLScriptElement || lost instanceof HTMLLinkElement) retry();
  }, true);
  const timers = [setTimeout(() => showMessage("The console is taking longer than usual to load."), slow), setTimeout(retry, stuck)];
  addEventListener("cutroom-started", () => {
    started = true;
    timers.forEach(clearTimeout);
    if (bare) return; // the page will be reloaded anyway, because it lacks a style sheet
    clearTimeout(waits);
    keep(() => sessionStorage.removeItem(tries));
  });
}
