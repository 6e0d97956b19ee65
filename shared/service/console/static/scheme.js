"use strict";
// Set the chosen colour scheme before anything is drawn.
{
  const chosen = localStorage.getItem("cutroom-scheme");
  if (chosen) document.documentElement.dataset.theme = chosen;
}
