// Shows before and after on top of each other, with a divider that the pointer or the keyboard moves. Two videos are
// played in sync.

import { icon, make, signButton } from "./dom.js";

const still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

// view returns an element that shows a picture or a video. If the browser cannot show it, the picture that other()
// resolves to is shown instead, if there is one.
export function view(kind, url, words, other) {
  const shown = kind === "image" ? make("img", { src: url, alt: words })
    : make("video", { src: url, playsinline: true, preload: "auto", loop: true, "aria-label": words });
  if (kind !== "image") {
    shown.muted = true;
    soundOnly(shown);
  }
  shown.addEventListener("error", async () => {
    const picture = await other?.();
    if (picture) shown.replaceWith(make("img", { src: picture, alt: words }));
  }, { once: true });
  return shown;
}

// soundOnly fires an error event if the browser can play only the sound of a video.
export const soundOnly = video => video.addEventListener("loadedmetadata", () => video.videoWidth || video.dispatchEvent(new Event("error")));

// fitTo gives the stage its content's proportions, so that there are no bars.
export function fitTo(stage, shown) {
  const fit = () => {
    const width = shown.videoWidth || shown.naturalWidth, height = shown.videoHeight || shown.naturalHeight;
    if (width && height) stage.style.setProperty("--ratio", width / height);
  };
  for (const event of ["loadedmetadata", "load"]) shown.addEventListener(event, fit);
  fit();
}

// compare returns the comparison element, and its playback bar if there is one. before is undefined if there is
// nothing to compare with. other resolves to a picture of the original. The stage takes on the result's proportions.
export function compare(kind, before, after, stage, other) {
  const box = make("div", { class: "compare" });
  const edited = view(kind, after, "The edited " + kind);
  fitTo(stage, edited);
  if (before === undefined) {
    box.append(edited);
  } else {
    const original = view(kind, before, "The original " + kind, other);
    const split = make("input", { type: "range", min: 0, max: 100, step: 0.5, value: 50, class: "split", "aria-label": "Boundary between the original and the edited picture" });
    const move = () => {
      box.style.setProperty("--split", `${split.value}%`);
      split.setAttribute("aria-valuetext", `${Math.round(split.value)} % original, ${Math.round(100 - split.value)} % edited`);
    };
    split.addEventListener("input", move);
    edited.classList.add("over");
    box.append(original, edited, make("span", { class: "tag before" }, "Before"), make("span", { class: "tag after" }, "After"), make("span", { class: "line" }), split);
    move();
  }
  const videos = [...box.querySelectorAll("video")];
  return { box, bar: videos.length ? player(edited, videos.find(video => video !== edited)) : undefined };
}

const clock = seconds => `${Math.floor(seconds / 60)}:${String(Math.floor(seconds % 60)).padStart(2, "0")}`;

export const together = ([lead, ...followers]) => player(lead, ...followers);

// player returns a playback bar for the video lead. It keeps the other given videos in sync with lead.
function player(lead, ...given) {
  const followers = given.filter(Boolean);
  const play = signButton("play", "Play", () => lead.paused ? start() : lead.pause());
  const sound = signButton("mute", "Sound on", () => {
    lead.muted = !lead.muted;
    signs();
  });
  const seek = make("input", { type: "range", min: 0, max: 1, step: 0.001, value: 0, "aria-label": "Position" });
  const time = make("span", { class: "time" }, "0:00");
  const start = () => lead.play().catch(() => {}); // fails if the element was removed before playback began
  const show = (control, sign, words) => {
    control.setAttribute("aria-label", words);
    control.title = words;
    control.replaceChildren(icon(sign));
  };
  const signs = () => {
    show(play, lead.paused ? "play" : "pause", lead.paused ? "Play" : "Pause");
    show(sound, lead.muted ? "mute" : "sound", lead.muted ? "Sound on" : "Sound off");
  };
  // Correct a video's position only if it is off by more than one or two frames.
  const step = () => {
    for (const follower of followers) {
      const wanted = Math.min(lead.currentTime, follower.duration || 0);
      if (follower.readyState > 0 && Math.abs(follower.currentTime - wanted) > 0.08 && !follower.seeking) follower.currentTime = wanted;
    }
    if (document.activeElement !== seek || !lead.paused) seek.value = lead.duration ? lead.currentTime / lead.duration : 0;
    time.textContent = `${clock(lead.currentTime)} / ${clock(lead.duration || 0)}`;
    seek.setAttribute("aria-valuetext", time.textContent);
    if (!lead.paused && lead.isConnected) requestAnimationFrame(step);
  };
  lead.addEventListener("play", () => {
    followers.forEach(follower => follower.play().catch(() => {}));
    signs();
    step();
  });
  lead.addEventListener("pause", () => {
    followers.forEach(follower => follower.pause());
    signs();
    step();
  });
  for (const event of ["seeked", "loadedmetadata"]) lead.addEventListener(event, step);
  // While a follower seeks, it ignores new positions. So check its position again afterwards.
  for (const follower of followers) follower.addEventListener("seeked", () => lead.paused && step());
  seek.addEventListener("input", () => {
    lead.currentTime = seek.value * (lead.duration || 0);
  });
  // The video may already be loaded, in which case the event does not fire again.
  if (!still()) {
    if (lead.readyState > 2) start();
    else lead.addEventListener("canplay", start, { once: true });
  }
  return make("div", { class: "player" }, play, seek, time, sound);
}
