"use strict";
// A marker encodes a number in the pixels of a picture, as a strip of cells in the lower right corner of a 640x360
// picture. The first cell is dark and the second bright. Then each bit has two cells, of which one is brighter, so
// the marker stays readable even if an edit changes the colors.

const markerBits = 10, markerCells = 2 + 2 * markerBits, cellWidth = 10, cellHeight = 14;

// The numbers repeat after this many pictures.
const markers = 1 << markerBits;

function drawMarker(at, number) {
  const left = 640 - markerCells * cellWidth;
  for (let cell = 0; cell < markerCells; cell++) {
    const bright = cell < 2 ? cell === 1 : (number >> (cell - 2 >> 1) & 1) === (cell & 1);
    at.fillStyle = bright ? "#ffffff" : "#000000";
    at.fillRect(left + cell * cellWidth, 360 - cellHeight, cellWidth, cellHeight);
  }
}

const strip = new OffscreenCanvas(markerCells * cellWidth, cellHeight).getContext("2d", { alpha: false, willReadFrequently: true });

// readMarker returns the number in a picture of any size, or undefined if the marker is unreadable.
function readMarker(picture, width, height) {
  const wide = markerCells * cellWidth;
  strip.drawImage(picture, width - wide * width / 640, height - cellHeight * height / 360, wide * width / 640, cellHeight * height / 360, 0, 0, wide, cellHeight);
  const { data } = strip.getImageData(0, 0, wide, cellHeight);
  // Use only the middle of each cell, because scaling mixes the edges with the neighboring cells.
  const cells = Array.from({ length: markerCells }, (_, cell) => {
    let sum = 0;
    for (let y = 4; y < 10; y++) {
      for (let x = 3; x < 7; x++) {
        const pixel = 4 * (y * wide + cell * cellWidth + x);
        sum += data[pixel] + data[pixel + 1] + data[pixel + 2];
      }
    }
    return sum / 72;
  });
  const contrast = cells[1] - cells[0];
  if (Math.abs(contrast) < 24) return undefined;
  let number = 0;
  for (let bit = 0; bit < markerBits; bit++) {
    const share = (cells[3 + 2 * bit] - cells[2 + 2 * bit]) / contrast;
    if (Math.abs(share) < .35) return undefined;
    if (share > 0) number |= 1 << bit;
  }
  return number;
}

// Stopwatch measures the latency of pictures by means of their markers.
class Stopwatch {
  constructor() {
    this.number = 0;
    this.drawn = [];
  }

  mark(at) {
    this.number = (this.number + 1) % markers;
    this.drawn[this.number] = performance.now();
    drawMarker(at, this.number);
  }

  // took returns how old a frame was when it was shown, or NaN if that is unknown. If an edit has destroyed the
  // marker, the video timestamp (in units of 1/90 ms) still shows when the frame was drawn, because the difference
  // between the two clocks is constant.
  took(picture, width, height, shown, timestamp) {
    const marker = readMarker(picture, width, height);
    if (marker !== undefined && shown - this.drawn[marker] < 10000) {
      if (timestamp !== undefined) this.distance = timestamp / 90 - this.drawn[marker];
      return shown - this.drawn[marker];
    }
    return timestamp === undefined || this.distance === undefined ? NaN : shown - (timestamp / 90 - this.distance);
  }
}
