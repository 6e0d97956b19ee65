// Cuts a file in the browser before it is uploaded: to a section of a video, to a part of the picture, or to one
// frame as an image.

import { button, make } from "./dom.js";

const shapes = [["", "All of it"], ["1", "Square"], [String(16 / 9), "Wide, 16:9"], [String(9 / 16), "Tall, 9:16"], [String(4 / 5), "Portrait, 4:5"]];
const shortest = 0.2; // in seconds
const still = "image/png";

const clock = seconds => `${Math.floor(seconds / 60)}:${(seconds % 60).toFixed(1).padStart(4, "0")}`;
const renamed = (file, what, ending) => `${file.name.replace(/\.[^.]*$/, "")}-${what}.${ending}`;

// area returns the largest part of a picture that has the aspect ratio shape, or undefined if shape is undefined. at
// (0 to 1) is the part's position along the side that is cut. Sides are even, because videos require that.
function area(width, height, shape, at) {
  if (!shape) return undefined;
  const even = length => Math.max(2, Math.floor(length / 2) * 2);
  const wide = even(Math.min(width, height * shape)), high = even(Math.min(height, width / shape));
  return { left: Math.round((width - wide) * at), top: Math.round((height - high) * at), width: wide, height: high };
}

// picture draws a part of an element's picture to a canvas, and resolves to the encoded bytes.
function picture(shown, width, height, part, type) {
  const { left, top, width: wide, height: high } = part || { left: 0, top: 0, width, height };
  const canvas = make("canvas", { width: wide, height: high });
  canvas.getContext("2d").drawImage(shown, left, top, wide, high, 0, 0, wide, high);
  return new Promise((resolve, reject) => canvas.toBlob(blob => blob ? resolve(blob) : reject(new Error("The browser cannot save this picture.")), type, 0.93));
}

// cutVideo encodes a section of a video again with the browser's codecs.
async function cutVideo(file, { start, end, part, progress, signal }) {
  if (typeof VideoEncoder !== "function") throw new Error("This browser cannot cut videos on this page. It may be able to do so over HTTPS. You can still send the entire file.");
  const { Input, BlobSource, BufferTarget, Output, Conversion, Mp4OutputFormat, MP4, QTFF, WEBM, MATROSKA } = await import("./mediabunny.js");
  const target = new BufferTarget();
  const conversion = await Conversion.init({
    input: new Input({ source: new BlobSource(file), formats: [MP4, QTFF, WEBM, MATROSKA] }),
    output: new Output({ format: new Mp4OutputFormat(), target }),
    trim: { start, end }, video: part ? { crop: part } : {}, showWarnings: false,
  });
  if (!conversion.isValid || conversion.discardedTracks.some(lost => lost.track.isVideoTrack())) throw new Error("This browser cannot cut this video format. You can still send the entire file.");
  conversion.onProgress = progress;
  signal.addEventListener("abort", () => conversion.cancel(), { once: true });
  await conversion.execute();
  signal.throwIfAborted();
  return { blob: new Blob([target.buffer], { type: "video/mp4" }), silent: conversion.discardedTracks.length > 0 };
}

// cut opens the dialog that cuts a source {value, url, name} of a kind, and calls done with the new File. took is
// called with a File when the user takes a frame.
export function cut(kind, source, done, took) {
  const video = kind === "video", file = source.value;
  const shown = video ? make("video", { src: source.url, playsinline: true, preload: "auto", "aria-label": "The video to cut" }) : make("img", { src: source.url, alt: "The image to crop" });
  const frame = make("div", { class: "cut-frame", "aria-hidden": "true" }), view = make("div", { class: "cut-view" }, shown, frame);
  const from = make("input", { id: "cut-from", type: "range", min: 0, step: 0.1, value: 0 }), to = make("input", { id: "cut-to", type: "range", min: 0, step: 0.1 });
  const fromText = make("output", { for: "cut-from" }), toText = make("output", { for: "cut-to" });
  const shape = make("select", { id: "cut-shape" }, shapes.map(([value, words]) => make("option", { value }, words)));
  const at = make("input", { id: "cut-at", type: "range", min: 0, max: 1, step: 0.01, value: 0.5 });
  const problem = make("p", { class: "problem", role: "alert" }), bar = make("progress", { max: 1, value: 0, "aria-label": "Cutting", hidden: true });
  const apply = make("button", { class: "primary" }, video ? "Cut" : "Crop");
  const controller = new AbortController();
  const size = () => video ? [shown.videoWidth, shown.videoHeight] : [shown.naturalWidth, shown.naturalHeight];
  const part = () => area(...size(), +shape.value, +at.value);
  const show = () => {
    const [width, height] = size(), { left, top, width: wide, height: high } = part() || { left: 0, top: 0, width, height };
    frame.style.inset = `${top / height * 100}% ${(1 - (left + wide) / width) * 100}% ${(1 - (top + high) / height) * 100}% ${left / width * 100}%`;
    view.style.setProperty("--ratio", width / height);
    at.closest(".field").hidden = !part() || (wide === width && high === height);
    for (const [input, text] of [[from, fromText], [to, toText]]) {
      text.textContent = clock(+input.value);
      input.setAttribute("aria-valuetext", text.textContent);
    }
  };
  const seek = input => {
    if (+to.value - +from.value < shortest) (input === from ? from : to).value = input === from ? Math.max(0, to.value - shortest) : +from.value + shortest;
    shown.currentTime = +input.value;
    show();
  };
  from.addEventListener("input", () => seek(from));
  to.addEventListener("input", () => seek(to));
  for (const control of [shape, at]) control.addEventListener("input", show);
  shown.addEventListener(video ? "loadedmetadata" : "load", () => {
    if (video) {
      from.max = to.max = shown.duration;
      to.value = shown.duration;
    }
    show();
  });
  const field = (label, control, text) => make("div", { class: "field" }, make("label", { for: control.id }, label, text), control);
  const dialog = make("dialog", { class: "dialog cut", "aria-labelledby": "dialog-title" },
    make("h2", { id: "dialog-title" }, video ? "Trim and crop" : "Crop"), view,
    make("form", { class: "new-key", on: { submit: async event => {
      event.preventDefault();
      apply.disabled = true;
      problem.textContent = "";
      bar.hidden = !video;
      try {
        if (video) {
          const { blob, silent } = await cutVideo(file, { start: +from.value, end: +to.value + 0.1 < shown.duration ? +to.value : undefined, part: part(), progress: share => { bar.value = share; }, signal: controller.signal });
          done(new File([blob], renamed(file, "cut", "mp4"), { type: "video/mp4" }), silent ? "The sound was removed, because this browser cannot write its format." : "");
        } else {
          const type = file.type === "image/jpeg" ? file.type : still;
          done(new File([await picture(shown, ...size(), part(), type)], renamed(file, "crop", type === still ? "png" : "jpg"), { type }), "");
        }
        dialog.close();
      } catch (failure) {
        if (!controller.signal.aborted) problem.textContent = failure.message;
      }
      bar.hidden = true;
      apply.disabled = false;
    } } },
      video && [field("From", from, fromText), field("To", to, toText)],
      field("Part of the picture", shape), field("Where", at),
      bar, problem,
      make("div", { class: "row end" },
        video && button("image", "Take this frame", async () => {
          took(new File([await picture(shown, ...size(), part(), still)], renamed(file, "frame", "png"), { type: still }));
          dialog.close();
        }, { title: "Edit the current frame as an image" }),
        button("", "Cancel", () => dialog.close()), apply)));
  dialog.addEventListener("close", () => {
    controller.abort();
    dialog.remove();
  });
  document.body.append(dialog);
  dialog.showModal();
  show();
}
