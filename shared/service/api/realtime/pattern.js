"use strict";
// The test pattern is a moving landscape. It has smooth and detailed areas, edges, saturated and skin-like colors,
// and light and dark parts.

const ridges = [
  { height: 205, depth: 34, length: 150, speed: 6, color: "#7d93b8" },
  { height: 240, depth: 30, length: 105, speed: 12, color: "#4f7a78" },
  { height: 285, depth: 24, length: 78, speed: 24, color: "#39643f" },
];

const balloons = [
  { x: 430, y: 118, size: 58, sway: 26, pace: .5, stripes: ["#d7263d", "#f7f3e9"] },
  { x: 205, y: 84, size: 34, sway: 18, pace: .7, stripes: ["#1b6ec2", "#f6c945"] },
  { x: 566, y: 66, size: 22, sway: 12, pace: .9, stripes: ["#7b3fa0", "#f4a259"] },
];

// drawPattern draws a picture of 640x360 pixels.
function drawPattern(at, seconds) {
  drawSky(at, seconds);
  for (const ridge of ridges) drawRidge(at, ridge, seconds);
  drawTrees(at, seconds);
  for (const balloon of balloons) drawBalloon(at, balloon, seconds);
  drawBars(at, seconds);
}

function drawSky(at, seconds) {
  const sky = at.createLinearGradient(0, 0, 0, 290);
  sky.addColorStop(0, "#4a8fd8");
  sky.addColorStop(.6, "#bcd9ea");
  sky.addColorStop(1, "#f8d9b0");
  at.fillStyle = sky;
  at.fillRect(0, 0, 640, 360);
  const x = 110 + 30 * Math.sin(seconds / 7), glow = at.createRadialGradient(x, 105, 10, x, 105, 95);
  glow.addColorStop(0, "#fffbe0");
  glow.addColorStop(.25, "#ffe9a8cc");
  glow.addColorStop(1, "#ffe9a800");
  at.fillStyle = glow;
  at.fillRect(0, 0, 640, 300);
  at.fillStyle = "#ffffffd0";
  for (let i = 0; i < 4; i++) {
    const left = (i * 190 + seconds * (7 + i * 2)) % 800 - 90, top = 42 + 26 * (i * 7 % 4);
    at.beginPath();
    for (const [dx, dy, wide] of [[0, 0, 36], [28, -9, 28], [54, 1, 32]]) at.ellipse(left + dx, top + dy, wide, wide / 3, 0, 0, 2 * Math.PI);
    at.fill();
  }
}

function drawRidge(at, { height, depth, length, speed, color }, seconds) {
  at.fillStyle = color;
  at.beginPath();
  at.moveTo(0, 360);
  for (let x = 0; x <= 640; x += 4) {
    const far = (x + seconds * speed) / length;
    at.lineTo(x, height - depth * (Math.sin(far) + .45 * Math.sin(2.3 * far + 1) + .2 * Math.sin(5.1 * far)));
  }
  at.lineTo(640, 360);
  at.fill();
}

function drawTrees(at, seconds) {
  const moved = seconds * 40;
  for (let i = Math.floor(moved / 54) - 1; i < moved / 54 + 13; i++) {
    const x = i * 54 + 17 * Math.sin(i * 5) - moved, tall = 44 + 18 * Math.sin(i * 3.7), foot = 338;
    at.fillStyle = "#3d2a1c";
    at.fillRect(x - 3, foot - 10, 6, 16);
    at.fillStyle = i % 3 ? "#1f4a2c" : "#2f6334";
    for (let step = 0; step < 3; step++) {
      const top = foot - tall + step * tall / 4, wide = 9 + step * 6;
      at.beginPath();
      at.moveTo(x, top);
      at.lineTo(x + wide, top + tall * .42);
      at.lineTo(x - wide, top + tall * .42);
      at.fill();
    }
  }
  at.fillStyle = "#26482a";
  at.fillRect(0, 338, 640, 22);
}

function drawBalloon(at, { x, y, size, sway, pace, stripes }, seconds) {
  const cx = x + sway * Math.sin(seconds * pace), cy = y + sway / 2 * Math.sin(seconds * pace * 1.7 + x);
  at.strokeStyle = "#5b4636";
  at.lineWidth = Math.max(1, size / 30);
  at.beginPath();
  for (const side of [-1, 1]) {
    at.moveTo(cx + side * size * .55, cy + size * .75);
    at.lineTo(cx + side * size * .16, cy + size * 1.55);
  }
  at.stroke();
  at.fillStyle = "#8a5a33";
  at.fillRect(cx - size * .19, cy + size * 1.52, size * .38, size * .3);
  at.save();
  at.beginPath();
  at.arc(cx, cy, size, Math.PI * .85, Math.PI * .15);
  at.quadraticCurveTo(cx + size * .62, cy + size * .98, cx + size * .2, cy + size * 1.25);
  at.lineTo(cx - size * .2, cy + size * 1.25);
  at.quadraticCurveTo(cx - size * .62, cy + size * .98, cx + size * Math.cos(Math.PI * .85), cy + size * Math.sin(Math.PI * .85));
  at.clip();
  // The balloon's stripes look narrower toward its rim.
  for (let i = 0; i < 7; i++) {
    const from = -Math.cos(Math.PI * i / 7), to = -Math.cos(Math.PI * (i + 1) / 7);
    at.fillStyle = stripes[i % 2];
    at.fillRect(cx + size * from, cy - size, size * (to - from) + 1, size * 2.4);
  }
  const shade = at.createRadialGradient(cx - size * .35, cy - size * .4, size * .1, cx, cy, size * 1.3);
  shade.addColorStop(0, "#fff6");
  shade.addColorStop(.5, "#0000");
  shade.addColorStop(1, "#0008");
  at.fillStyle = shade;
  at.fillRect(cx - size, cy - size, size * 2, size * 2.4);
  at.restore();
}

function drawBars(at, seconds) {
  ["#ffffff", "#f2d21b", "#22b8cf", "#2f9e44", "#c2255c", "#e03131", "#1c4fd8", "#101010", "#e5b48f", "#8d5a3b"].forEach((color, i) => {
    at.fillStyle = color;
    at.fillRect(i * 44, 346, 44, 14);
  });
  at.fillStyle = "#101010";
  at.fillRect(440, 346, 200, 14);
  at.fillStyle = "#f2d21b";
  at.fillRect(440, 346, 200 * (seconds % 2 / 2), 14);
}
