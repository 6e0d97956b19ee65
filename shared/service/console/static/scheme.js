"use strict";
// The scheme that was chosen is set before anything is drawn.
{
  const chosen = localStorage.getItem("cutroom-scheme");
  if (chosen) document.documentElement.dataset.theme = chosen;
}
