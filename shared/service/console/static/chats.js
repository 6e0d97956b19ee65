// Stores conversations in this browser, separately for each key. The service stores no conversations.

import { key } from "./service.js";

const most = 40, longest = 2_000_000; // how many conversations are kept, and how many characters in total

// name resolves to the storage key. It is a hash, so that it does not reveal the API key.
async function name() {
  const bytes = new TextEncoder().encode(`cutroom chats ${key()}`);
  const sum = await crypto.subtle?.digest("SHA-256", bytes);
  return sum && `cutroom-chats-${[...new Uint8Array(sum).slice(0, 8)].map(byte => byte.toString(16).padStart(2, "0")).join("")}`;
}

// all resolves to the conversations, latest first: {id, at, title, model, system, messages}. Without HTTPS, browsers
// cannot compute the hash, so conversations stay in the tab.
export async function all() {
  try {
    const place = await name();
    return JSON.parse((place ? localStorage.getItem(place) : sessionStorage.getItem("cutroom-chats")) || "[]");
  } catch {
    return [];
  }
}

async function write(chats) {
  let text = JSON.stringify(chats.slice(0, most));
  while (text.length > longest && chats.length > 1) {
    chats = chats.slice(0, -1);
    text = JSON.stringify(chats);
  }
  try {
    const place = await name();
    if (place) localStorage.setItem(place, text);
    else sessionStorage.setItem("cutroom-chats", text);
  } catch {
    // The storage is full or disabled. The conversations last until the page is closed.
  }
}

// keep saves a conversation as the latest one.
export async function keep(chat) {
  await write([{ ...chat, at: Date.now() }, ...(await all()).filter(one => one.id !== chat.id)]);
}

export async function drop(id) {
  await write((await all()).filter(one => one.id !== id));
}
