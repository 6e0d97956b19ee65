// Keeps copies of the user's files in this browser, so that a reload loses no file and a result can be compared with
// its original: the service deletes inputs soon after a job has ended. If the browser's storage is disabled, these
// functions do nothing.

const largest = 200e6; // maximum size of a file, in bytes
const most = 24; // maximum number of files
const oldest = 7 * 86400e3; // maximum age of a file, in milliseconds

let opened;

function database() {
  opened ??= new Promise((resolve, reject) => {
    const request = indexedDB.open("cutroom", 1);
    request.onupgradeneeded = () => request.result.createObjectStore("files", { keyPath: "id" });
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
  return opened;
}

// within performs one request in a transaction. It resolves to undefined if the request fails.
async function within(mode, ask) {
  try {
    const store = (await database()).transaction("files", mode).objectStore("files");
    return await new Promise((resolve, reject) => {
      const request = ask(store);
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => reject(request.error);
    });
  } catch {
    return undefined;
  }
}

// put stores a file, and deletes old ones.
export async function put(id, file) {
  if (file.size > largest) return;
  await within("readwrite", store => store.put({ id, file, at: Date.now() }));
  const kept = (await within("readonly", store => store.getAll())) || [];
  const old = [
    ...kept.filter(one => one.file).sort((a, b) => b.at - a.at).slice(most), ...kept.filter(one => Date.now() - one.at > oldest),
  ];
  for (const { id } of old) await within("readwrite", store => store.delete(id));
}

export async function get(id) {
  return (await within("readonly", store => store.get(id)))?.file;
}

// remember notes which file a job was made from. The file may be a stored one.
export async function remember(job, id) {
  await within("readwrite", store => store.put({ id: `job ${job}`, of: id, at: Date.now() }));
}

export async function sourceOf(job) {
  const found = await within("readonly", store => store.get(`job ${job}`));
  return found && get(found.of);
}

export const clear = () => within("readwrite", store => store.clear());
