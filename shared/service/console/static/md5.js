// Computes a file's MD5 piece by piece (RFC 1321). The service uses it to verify an upload to a signed URL, and
// browsers have no function for it.

const shifts = [7, 12, 17, 22, 5, 9, 14, 20, 4, 11, 16, 23, 6, 10, 15, 21];
const sines = Int32Array.from({ length: 64 }, (_, i) => Math.floor(Math.abs(Math.sin(i + 1)) * 2 ** 32));

// mix updates the state with complete blocks of 64 bytes.
function mix(state, view, blocks) {
  let [a0, b0, c0, d0] = state;
  for (let at = 0; at < blocks * 64; at += 64) {
    let a = a0, b = b0, c = c0, d = d0;
    for (let i = 0; i < 64; i++) {
      let f, g;
      if (i < 16) [f, g] = [(b & c) | (~b & d), i];
      else if (i < 32) [f, g] = [(d & b) | (~d & c), (5 * i + 1) & 15];
      else if (i < 48) [f, g] = [b ^ c ^ d, (3 * i + 5) & 15];
      else [f, g] = [c ^ (b | ~d), (7 * i) & 15];
      const sum = (a + f + sines[i] + view.getInt32(at + 4 * g, true)) | 0, by = shifts[(i >> 4) * 4 + (i & 3)];
      a = d; d = c; c = b;
      b = (b + ((sum << by) | (sum >>> (32 - by)))) | 0;
    }
    a0 = (a0 + a) | 0; b0 = (b0 + b) | 0; c0 = (c0 + c) | 0; d0 = (d0 + d) | 0;
  }
  return [a0, b0, c0, d0];
}

const piece = 4 << 20;

// digest resolves to the MD5 of a Blob in hex. progress is called with the finished fraction (0 to 1).
export async function digest(blob, signal, progress = () => {}) {
  let state = [0x67452301, 0xefcdab89 | 0, 0x98badcfe | 0, 0x10325476];
  let at = 0;
  for (; at + piece <= blob.size; at += piece) {
    signal?.throwIfAborted();
    progress(at / blob.size);
    state = mix(state, new DataView(await blob.slice(at, at + piece).arrayBuffer()), piece / 64);
  }
  const rest = new Uint8Array(await blob.slice(at).arrayBuffer());
  const last = new Uint8Array(Math.ceil((rest.length + 9) / 64) * 64);
  last.set(rest);
  last[rest.length] = 0x80;
  const view = new DataView(last.buffer);
  view.setUint32(last.length - 8, (blob.size * 8) >>> 0, true);
  view.setUint32(last.length - 4, Math.floor(blob.size / 2 ** 29), true);
  state = mix(state, view, last.length / 64);
  const digits = new DataView(new ArrayBuffer(16));
  state.forEach((word, i) => digits.setInt32(4 * i, word, true));
  return Array.from(new Uint8Array(digits.buffer), byte => byte.toString(16).padStart(2, "0")).join("");
}
