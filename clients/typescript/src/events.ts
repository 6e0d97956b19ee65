/** A server-sent event (https://html.spec.whatwg.org/multipage/server-sent-events.html). */
export interface ServerSentEvent {
  name: string;
  data: string;
}

/** Yields the events of a stream. */
export async function* read(stream: ReadableStream<Uint8Array<ArrayBuffer>>): AsyncGenerator<ServerSentEvent, void> {
  let name = "", data: string[] = [];
  for await (const line of lines(stream)) {
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (line === "") {
      if (data.length > 0) yield { name, data: data.join("\n") };
      name = "";
      data = [];
    } else if (field === "event") name = value;
    else if (field === "data") data.push(value);
  }
}

async function* lines(stream: ReadableStream<Uint8Array<ArrayBuffer>>): AsyncGenerator<string, void> {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (let read = await reader.read(); !read.done; read = await reader.read()) {
      const parts = (rest + read.value).split("\n");
      rest = parts.pop() ?? "";
      for (const part of parts) yield part.replace(/\r$/, "");
    }
  } finally {
    await reader.cancel().catch(() => undefined); // stopping the reader closes the connection
  }
}
