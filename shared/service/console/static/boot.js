"use strict";
// Code that must work before the console is loaded: the chosen colour scheme, and another try when
// a file of the page does not arrive. A missing file would leave the page blank, because a module
// runs only with all of its imports. Browsers abort all fetches when a network comes or goes, even
// on loopback, so this code is inline in the document.
{
  const tries = "cutroom-loads", quiet = 3, slow = 10_000, stuck = 45_000, longest = 15_000;
  let started = false, bare = false, waits;

  // Storage throws if the browser is set to keep nothing.
  const keep = act => {
    try {
      return act();
    } catch {
      return undefined;
    }
  };

  const chosen = keep(() => localStorage.getItem("cutroom-scheme"));
  if (chosen) document.documentElement.dataset.theme = chosen;

  // tell replaces the unfinished page by a message.
  const tell = text => {
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
    if (count >= quiet) tell("The console could not be loaded. Trying again.");
    waits = setTimeout(() => location.reload(), Math.min(longest, 400 * 2 ** count));
  };
  addEventListener("online", () => waits && location.reload());

  // Load errors do not bubble, so capture them.
  addEventListener("error", event => {
    const lost = event.target;
    if (lost instanceof HTMLLinkElement && lost.rel === "stylesheet") bare = true;
    if (lost instanceof HTMLScriptElement || lost instanceof HTMLLinkElement) retry();
  }, true);
  const timers = [setTimeout(() => tell("The console takes longer to load than it should."), slow), setTimeout(retry, stuck)];
  addEventListener("cutroom-started", () => {
    started = true;
    timers.forEach(clearTimeout);
    if (bare) return; // a page that started without its style is loaded again anyway
    clearTimeout(waits);
    keep(() => sessionStorage.removeItem(tries));
  });
}
