// Draws a chart of stacked bars over time. The pointer or the arrow keys select a bar, whose values are shown in a
// tip. For screen readers, the chart is a slider.

import { draw, make } from "./dom.js";

const height = 220, head = 8, foot = 22, letter = 6.6; // in pixels

// drawChart draws a chart into place. bars are {label, title, values}, with one value per series. series are {name,
// color, rest}; rest marks the series that combines all others. words(value) formats a value, and axis(value) formats
// it for the axis.
export function drawChart(place, { title, bars, series, words, axis }) {
  const width = Math.max(260, place.clientWidth - parseFloat(getComputedStyle(place).paddingLeft) * 2);
  const top = ceiling(Math.max(...bars.map(bar => sum(bar.values))));
  const marks = [0, 0.5, 1].map(part => [top * part, axis(top * part)]);
  const side = Math.ceil(Math.max(...marks.map(([, text]) => text.length)) * letter) + 12;
  const step = (width - side) / bars.length, y = value => (height - foot) * (1 - value / top) + head;
  const svg = draw("svg", { viewBox: `0 0 ${width} ${height + head}`, "aria-hidden": "true" });
  for (const [value, text] of marks) svg.append(draw("line", { x1: side, x2: width, y1: y(value), y2: y(value), class: "rule" }), textAt(side - 8, y(value) + 4, "axis end", text));
  const here = draw("rect", { y: head, width: step, height: height - foot, class: "here", visibility: "hidden" });
  svg.append(here);
  const labelEvery = Math.ceil(bars.length / ((width - side) / 80));
  bars.forEach((bar, i) => {
    svg.append(...stack(bar.values, series, { x: side + step * (i + 0.14), width: step * 0.72, y }));
    if (i % labelEvery === 0) svg.append(textAt(side + (i + 0.5) * step, height + 4, "axis middle", bar.label));
  });
  const tip = make("div", { class: "tip", "aria-hidden": "true", hidden: true });
  const slider = make("div", { class: "plot", role: "slider", tabindex: 0, "aria-label": title, "aria-valuemin": 0, "aria-valuemax": bars.length - 1, "aria-orientation": "horizontal" }, svg, tip);
  const held = place.contains(document.activeElement); // whether the focus is in the chart and must stay there
  place.replaceChildren(slider, make("ul", { class: "legend" }, series.map(one => make("li", { "data-color": one.color }, one.name))));
  listen(slider, { bars, series, words, tip, here, side, step, width });
  if (held) slider.focus();
}

const sum = values => values.reduce((a, b) => a + b, 0);

function textAt(x, y, kind, words) {
  const text = draw("text", { x, y, class: kind });
  text.textContent = words;
  return text;
}

// stack returns the segments of one bar, from bottom to top.
function stack(values, series, { x, width, y }) {
  let base = 0;
  return values.flatMap((value, i) => {
    if (!value) return [];
    const from = y(base), to = y(base += value);
    return [draw("rect", { x, width, y: to, height: Math.max(0.5, from - to - (from - to > 3 ? 1 : 0)), rx: Math.min(2, width / 4), "data-color": series[i].color })];
  });
}

// listen moves the tip to the bar at the pointer or selected by keys. Escape hides the tip.
function listen(slider, { bars, series, words, tip, here, side, step, width }) {
  let at = bars.findLastIndex(bar => sum(bar.values) > 0);
  const note = () => {
    const parts = partsOf(bars[at], series);
    slider.setAttribute("aria-valuenow", at);
    slider.setAttribute("aria-valuetext", `${bars[at].title}: ${words(sum(bars[at].values))}${parts.length > 1 ? `; ${parts.map(one => `${one.name} ${words(one.value)}`).join(", ")}` : ""}`);
  };
  const hide = () => {
    tip.hidden = true;
    here.setAttribute("visibility", "hidden");
  };
  const show = next => {
    at = Math.min(bars.length - 1, Math.max(0, next));
    note();
    here.setAttribute("x", side + at * step);
    here.setAttribute("visibility", "visible");
    tip.replaceChildren(...tipOf(bars[at], series, words));
    tip.hidden = false;
    // Put the tip next to its bar, on the side with more space.
    const scale = slider.clientWidth / width, left = (side + at * step) * scale, right = left + step * scale;
    const room = slider.clientWidth - tip.offsetWidth;
    tip.style.left = `${Math.max(0, right + 8 <= room ? right + 8 : Math.min(room, left - 8 - tip.offsetWidth))}px`;
  };
  const under = event => show(Math.floor(((event.clientX - slider.getBoundingClientRect().left) * width / slider.clientWidth - side) / step));
  const moves = { ArrowLeft: () => at - 1, ArrowDown: () => at - 1, ArrowRight: () => at + 1, ArrowUp: () => at + 1, PageDown: () => at - 7, PageUp: () => at + 7, Home: () => 0, End: () => bars.length - 1 };
  const press = event => {
    if (event.key === "Escape") return hide();
    if (!moves[event.key] || event.altKey || event.ctrlKey || event.metaKey) return undefined;
    event.preventDefault();
    return show(moves[event.key]());
  };
  for (const [event, act] of Object.entries({
    pointermove: under, pointerdown: under, pointerleave: event => event.pointerType === "mouse" && !slider.matches(":focus-visible") && hide(),
    focus: () => slider.matches(":focus-visible") && show(at), blur: hide, keydown: press,
  })) slider.addEventListener(event, act);
  note();
}

// partsOf returns a bar's values by size, largest first. The combined rest is last.
const partsOf = (bar, series) => series.map((one, i) => ({ ...one, value: bar.values[i] })).filter(one => one.value > 0).sort((a, b) => Boolean(a.rest) - Boolean(b.rest) || b.value - a.value);

function tipOf(bar, series, words) {
  return [
    make("p", {}, make("strong", {}, bar.title), make("span", {}, words(sum(bar.values)))),
    make("ul", {}, partsOf(bar, series).map(one => make("li", {}, make("span", { "data-color": one.color, class: "file-name" }, one.name), make("span", {}, words(one.value))))),
  ];
}

// ceiling rounds up to a number with only one digit other than zero.
function ceiling(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 4, 5, 8, 10].map(one => one * power).find(one => one >= value * 0.999999);
}
