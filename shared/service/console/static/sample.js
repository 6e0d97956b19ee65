// Loads the sample clip and the sample image.

const samples = { video: ["sample.mp4", "video/mp4"], image: ["sample.jpg", "image/jpeg"] };

export async function sample(mode) {
  const [name, type] = samples[mode];
  const answer = await fetch(name, { signal: AbortSignal.timeout(30_000) });
  if (!answer.ok) throw new Error(`status ${answer.status}`);
  return new File([await answer.arrayBuffer()], name, { type });
}
