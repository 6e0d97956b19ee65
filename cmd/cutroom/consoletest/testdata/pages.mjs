// Flows of the login and of all pages except Edit.

import { execFile } from "node:child_process";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { api, check, env, equal, media, until } from "./world.mjs";

export async function signIn(visit) {
  const person = await visit({ url: env.URL }), { page } = person;
  await page.goto(env.URL + "/");
  equal(new URL(page.url()).pathname, "/console/", "the root leads a browser to");
  const alert = page.getByRole("alert");
  for (const [key, words] of [["ck_no_such_key_here", "key is unknown"], ["ek_a_client_token", "client token"], ["hello", "keys start with ck_"]]) {
    await page.getByLabel("API key").fill(key);
    await page.getByRole("button", { name: "Sign in" }).click();
    await alert.filter({ hasText: words }).waitFor();
  }
  await person.accessible("a rejected key");
  await person.shot("sign-in");
  await page.emulateMedia({ colorScheme: "dark" });
  await person.accessible("a rejected key, dark");
  await person.signIn();
  await page.reload();
  await page.locator(".page.edit").waitFor();
  const kept = await page.evaluate(() => [JSON.stringify(localStorage), document.cookie, location.href].join());
  check(!kept.includes(env.KEY), "the key is kept beyond the tab");

  // A second tab shares the login of the first tab, and its logout.
  const other = await person.context.newPage();
  await other.goto(env.URL + "/console/#usage");
  await other.locator(".page.usage").waitFor();
  await page.getByRole("button", { name: "Sign out" }).click();
  for (const tab of [page, other]) {
    await tab.getByLabel("API key").waitFor();
    equal(await tab.evaluate(() => sessionStorage.length), 0, "stored data after the logout");
  }
  await other.getByLabel("API key").fill(env.KEY);
  await other.keyboard.press("Enter");
  await page.locator(".page.edit").waitFor(); // logged in with the other tab's key
  await other.close();
  const stranger = await visit({ url: env.URL });
  await stranger.page.goto(env.URL + "/console/");
  await stranger.page.getByLabel("API key").waitFor();
}

// If the page's files arrive late or not at all, the page loads them again or reports an error. It is never blank.
export async function loading(visit) {
  const person = await visit({}), { page } = person;
  const spoiled = async (pattern, act) => {
    let count = 0;
    await page.route(pattern, route => count++ === 0 ? act(route) : route.continue());
    await page.goto(`${env.URL}/console/`);
    await until(`${pattern} is asked for again`, () => count > 1);
    await page.getByLabel("API key").waitFor();
    await page.unroute(pattern);
  };
  await spoiled("**/chat.js", route => route.abort());
  await spoiled("**/dom.js", route => route.fulfill({ status: 503 }));
  await spoiled("**/edit.css", route => route.abort());
  await spoiled("**/config.json", route => route.abort());
  await spoiled("**/config.json", route => route.fulfill({ status: 500, body: "{}" }));
  await spoiled("**/config.json", () => {}); // config.json never arrives

  // When the network goes down or comes up, all its connections break.
  let broken = 0;
  await page.route("**/console/*", route => route.request().resourceType() !== "document" && broken++ < 60 ? route.abort() : route.continue());
  await page.goto(`${env.URL}/console/`);
  await page.getByLabel("API key").waitFor();
  await page.unroute("**/console/*");

  await page.route("**/main.js", route => route.abort());
  await page.goto(`${env.URL}/console/`);
  await page.getByRole("alert").filter({ hasText: "could not be loaded" }).waitFor();
  await page.unroute("**/main.js");
  await page.getByRole("button", { name: "Try again" }).click();
  await page.getByLabel("API key").waitFor();

  // If a page that is loaded on demand cannot be loaded, the console reports it.
  await page.route("**/usage.js", route => route.abort());
  await person.signIn("usage");
  await page.getByRole("alert").filter({ hasText: "could not be loaded" }).waitFor();
  await page.unroute("**/usage.js");
  await page.getByRole("button", { name: "Try again" }).click();
  await page.getByLabel("30 days").waitFor();

  // If the service does not respond, the user stays logged in.
  await page.route("**/v1/files?*", route => route.abort());
  await page.reload();
  await page.getByRole("alert").filter({ hasText: "is unreachable" }).waitFor();
  await person.accessible("an unreachable service");
  await page.unroute("**/v1/files?*");
  await page.getByRole("button", { name: "Try again" }).click();
  await page.locator(".page.usage").waitFor();
  person.forgive("net::ERR_FAILED");
}

// Every view has its own URL, which also works after a reload and with the back button.
export async function addresses(visit) {
  const person = await visit({}), { page } = person;
  await person.signIn("usage?span=7&measure=requests");
  equal(await page.getByLabel("7 days").isChecked(), true, "the days in the URL");
  equal(await page.getByLabel("Requests", { exact: true }).isChecked(), true, "the measure in the URL");
  await person.go("Gallery");
  await page.getByLabel("State").selectOption("failed");
  await until("the address has the state", () => page.url().endsWith("#jobs?state=failed"));
  await page.reload();
  await page.locator(".page.jobs").waitFor();
  equal(await page.getByLabel("State").inputValue(), "failed", "the state after a reload");
  await person.go("Keys");
  await page.goBack();
  await page.locator(".page.jobs").waitFor();
  await page.goBack();
  await page.locator(".page.usage").waitFor();
  // If no measure is selected, the page shows one that has data.
  const row = { day: new Date().toISOString().slice(0, 10), model: "gen-2.5", jobs: 3, requests: 0, prompt_tokens: 0, completion_tokens: 0, cached_tokens: 0, reasoning_tokens: 0 };
  await page.route("**/v1/usage?*", route => route.fulfill({ json: { data: [row] } }));
  await page.evaluate(() => { location.hash = "usage"; });
  await page.reload();
  await page.getByRole("slider", { name: "Edits by day" }).waitFor();
  equal(await page.getByLabel("Edits", { exact: true }).isChecked(), true, "the chosen measure");
}

// Tabs notify each other. Leaving the page during an upload needs confirmation. If the user is in another tab when
// the edit ends, the browser shows a notification.
export async function elsewhere(visit) {
  const person = await visit({}), { page } = person;
  await person.context.grantPermissions(["notifications"], { origin: env.URL });
  await page.addInitScript(() => {
    window.shown = [];
    window.Notification = class {
      static permission = "granted";
      static requestPermission = async () => "granted";
      constructor(title, { body }) { window.shown.push(`${title}: ${body}`); }
    };
  });
  await person.signIn("jobs");
  const other = await person.context.newPage();
  await other.goto(`${env.URL}/console/#edit/words`);
  await other.getByLabel("Prompt", { exact: true }).fill("fireworks for the other tab");
  await other.getByRole("button", { name: "Make video" }).click();
  await page.getByRole("link", { name: /fireworks for the other tab/ }).waitFor();
  // Changes made by other programs appear too.
  const { body: { job_id: made } } = await api("POST", "/v1/jobs/gen-pro-t2v", new URLSearchParams({ prompt: "made by a program" }));
  await page.evaluate(() => document.dispatchEvent(new Event("visibilitychange")));
  await page.locator(`[data-id="${made}"][data-status=completed]`).waitFor();
  // A job that is deleted in this tab disappears from the other tab.
  const tile = other.locator(`.recent [data-id="${made}"]`);
  await other.evaluate(() => document.dispatchEvent(new Event("visibilitychange")));
  await tile.waitFor();
  await page.getByLabel("Select made by a program").check({ force: true });
  await page.keyboard.press("Delete");
  await page.getByRole("button", { name: "Delete the edit" }).click();
  await tile.waitFor({ state: "detached" });
  await person.go("Files");
  await other.evaluate(() => { location.hash = "files"; });
  const [chosen] = await Promise.all([other.waitForEvent("filechooser"), other.getByRole("button", { name: "Upload files" }).click()]);
  await chosen.setFiles({ name: "from-the-other-tab.txt", mimeType: "text/plain", buffer: Buffer.from("words") });
  await page.getByLabel("Select from-the-other-tab.txt").check({ force: true });
  await page.keyboard.press("Delete");
  await page.getByRole("button", { name: "Delete the file" }).click();
  await other.locator(".file").filter({ hasText: "from-the-other-tab.txt" }).waitFor({ state: "detached" });
  await page.keyboard.press("Escape");
  await other.close();

  await person.go("Edit");
  await page.getByText("Text to video").click();
  await page.getByRole("button", { name: "Notify me when an edit ends" }).click();
  await page.getByLabel("Prompt", { exact: true }).fill("rain");
  await page.evaluate(() => Object.defineProperty(document, "hidden", { value: true, configurable: true }));
  await page.getByRole("button", { name: "Make video" }).click();
  await until("a notification", () => page.evaluate(() => window.shown.length === 1));
  equal(await page.evaluate(() => window.shown[0]), "Your edit has finished: rain", "the notification");
  equal(await page.title(), "Done: rain", "the tab's title");
  await page.evaluate(() => {
    delete document.hidden;
    document.dispatchEvent(new Event("visibilitychange"));
  });
  equal(await page.title(), "Edit – Cutroom", "the tab's title once it is visible");

  // The user leaves the page during an upload.
  await person.go("Files");
  let release;
  await page.route("**/v1/files", route => route.request().method() === "POST" ? new Promise(resolve => { release = () => resolve(route.continue()); }) : route.continue());
  const [chooser] = await Promise.all([page.waitForEvent("filechooser"), page.getByRole("button", { name: "Upload files" }).click()]);
  await chooser.setFiles(media("garment.png"));
  await until("the upload is running", () => release);
  const [dialog] = await Promise.all([page.waitForEvent("dialog"), page.evaluate(() => { setTimeout(() => location.reload()); })]);
  equal(dialog.type(), "beforeunload", "the question on leaving");
  await dialog.dismiss();
  release();
  await page.locator(".file").filter({ hasText: "garment.png" }).first().waitFor();
}

// A user whose key was revoked sees a message, and can log in again on the same page.
export async function revoked(visit) {
  const made = (await api("POST", "/v1/keys", JSON.stringify({ label: "short-lived" }))).body;
  const person = await visit({}), { page } = person;
  await person.signIn("files", made.key);
  equal((await api("DELETE", `/v1/keys/${made.id}`)).status, 204, "revoking the key");
  await until("the key is rejected", async () => (await fetch(`${env.URL}/v1/files?limit=1`, { headers: { "x-api-key": made.key } })).status === 401);
  await person.go("Gallery");
  await page.getByRole("alert").filter({ hasText: "no longer accepts this tab's key" }).waitFor();
  await person.accessible("a rejected key");
  const other = await person.context.newPage();
  await other.goto(`${env.URL}/console/`);
  await other.getByLabel("API key").waitFor(); // the rejected key is not shared with the other tab
  await other.evaluate(key => sessionStorage.setItem("cutroom-key", key), made.key);
  await other.goto(`${env.URL}/console/#usage`);
  await other.reload();
  await page.getByRole("button", { name: "Sign in again" }).click();
  await page.getByLabel("API key").fill(env.KEY);
  await page.keyboard.press("Enter");
  await page.locator(".page.jobs").waitFor();
  await other.locator(".page.usage").waitFor(); // the other tab has received the new key
  await other.getByRole("link", { name: "Keys" }).waitFor();
  equal(await page.locator(".refused-key").count(), 0, "errors about the key");
}

// A model's Markdown is rendered, but its HTML and scripts are not.
export async function markdown(visit) {
  const person = await visit({}), { page } = person;
  await page.route("**/v1/models", route => route.abort()); // the gateway is unreachable
  await person.signIn("chat");
  await page.getByRole("alert").filter({ hasText: "models are not available yet" }).waitFor();
  await page.unroute("**/v1/models");
  // The models appear when the gateway is reachable again.
  await page.getByLabel("Model", { exact: true }).selectOption("scribe");
  person.forgive("net::ERR_FAILED");
  await page.getByLabel("Message", { exact: true }).fill("Write.");
  await page.keyboard.press("Enter");
  const answer = page.getByRole("article", { name: "The model" });
  await answer.filter({ hasText: /\d+ in · \d+ out/ }).waitFor();
  for (const [selector, text] of [["h3", "Cuts"], ["li strong", "jump"], ["td[data-align=right]", "24"], ["pre code", "ffmpeg -i a.mp4"], ["a[href='https://example.com/']", "a page"]]) {
    equal(await answer.locator(selector).first().textContent(), text, `${selector} of the answer`);
  }
  const words = await answer.locator(".words").textContent();
  check(words.includes("<img src=x onerror=alert(1)>"), `HTML is shown as it is written: ${words}`);
  equal(await answer.locator("img, script, a[href^='javascript']").count(), 0, "elements from the model's text");
  await answer.getByRole("button", { name: "Copy the code" }).click();
  equal(await page.evaluate(() => navigator.clipboard.readText()), "ffmpeg -i a.mp4", "the copied code");
  await answer.getByRole("button", { name: "Copy the message" }).click();
  check((await page.evaluate(() => navigator.clipboard.readText())).startsWith("# Cuts"), "a message is copied unchanged");
  await person.accessible("a formatted reply");
  await person.shot("chat-markdown");
  await answer.getByRole("button", { name: "Answer again" }).click();
  await answer.filter({ hasText: /\d+ in · \d+ out/ }).waitFor();
  equal(await answer.count(), 1, "replies after a retry");
  await page.getByRole("button", { name: "Edit the message" }).click();
  await page.getByLabel("Edited message").fill("Write again.");
  await page.getByRole("button", { name: "Send" }).first().click();
  await until("one reply to the changed message", async () => await answer.count() === 1 && /\d+ in/.test(await answer.textContent()));
  equal(await page.getByRole("article", { name: "You" }).locator(".words").textContent(), "Write again.", "the message is");
  await page.reload();
  await answer.locator("h3").waitFor();
  const [saved] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Save as Markdown" }).click()]);
  equal(saved.suggestedFilename(), "Write-again.md", "the name of a saved chat");
  const text = readFileSync(await saved.path(), "utf8");
  check(text.includes("Model: scribe") && text.includes("## You\n\nWrite again.\n") && text.includes("## The model\n\n# Cuts"), `a saved chat: ${text}`);
  await page.getByRole("button", { name: "New chat" }).click();
  equal(await answer.count(), 0, "messages of a new chat");
  await page.getByLabel("Search chats").fill("nobody said this");
  await page.getByText("No chats contain these words.").waitFor();
  await page.getByLabel("Search chats").fill("MATCH cut");
  await page.getByRole("link", { name: "Write again." }).click();
  await answer.locator("h3").waitFor();
  await page.getByRole("button", { name: "Delete the chat Write again." }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await answer.waitFor({ state: "detached" });
}

export async function chat(visit) {
  const person = await visit({}), { page } = person;
  await person.signIn("chat");
  await person.accessible("an empty chat");
  await page.getByLabel("System prompt").fill("You are a film editor.");
  await page.getByLabel("Message", { exact: true }).fill("Hello, you!");
  await page.keyboard.press("Enter");
  const answer = page.getByRole("article", { name: "The model" });
  await answer.filter({ hasText: /\d+ in · \d+ out/ }).waitFor();
  check((await answer.textContent()).includes("Hello, you!"), "the demonstration repeats the message");
  check(/^[\d,]+ tokens used/.test(await page.locator("#tokens-used").textContent()), "the tokens are counted");
  await page.getByRole("button", { name: "Copy as curl" }).click();
  const line = await page.evaluate(() => navigator.clipboard.readText());
  check(line.includes("Bearer $CUTROOM_API_KEY") && line.includes("Hello, you!") && line.includes("film editor"), `the line asks the same: ${line}`);

  await page.getByLabel("Model", { exact: true }).selectOption("endless");
  await page.getByLabel("Message", { exact: true }).fill("Go on.");
  await page.keyboard.press("Enter");
  await answer.nth(1).filter({ hasText: "It never ends" }).waitFor();
  await person.shot("chat");
  await page.getByRole("button", { name: "Stop" }).click();
  await answer.nth(1).filter({ hasText: "Stopped" }).waitFor();
  await person.accessible("a conversation");

  await page.getByLabel("Max tokens").fill("0");
  await page.getByLabel("Message", { exact: true }).fill("Once more.");
  await page.keyboard.press("Enter");
  await page.getByRole("alert").filter({ hasText: "max_tokens" }).waitFor();
  await page.getByRole("button", { name: "New chat" }).click();
  equal(await page.locator(".message").count(), 0, "messages of a new chat");

  await person.go("Usage");
  await page.locator("rect[data-color]").first().waitFor();
  await page.getByRole("row").filter({ hasText: "cutroom-echo" }).waitFor();
  await page.locator(".totals").getByText("Edits", { exact: true }).waitFor();
  await person.accessible("usage");
  await person.shot("usage");
  await page.emulateMedia({ colorScheme: "dark" });
  await person.accessible("usage, dark");
  await page.getByLabel("What to show").getByText("Requests").click();
  await page.getByRole("slider", { name: "Requests by day" }).waitFor();
}

// The API page has samples that work, and fields that can be searched. Its forms accept stored files.
export async function docs(visit) {
  const person = await visit({}), { page } = person;
  await page.goto(`${env.URL}/docs`);
  const nav = page.getByRole("navigation", { name: "Contents" }), filter = page.getByLabel("Filter operations");
  await nav.getByRole("link", { name: "Complete a chat" }).waitFor(); // an operation of the gateway
  await filter.fill("Webhook");
  await nav.getByRole("link", { name: /gen-2\.5/ }).filter({ hasText: "webhook_url" }).waitFor();
  await filter.fill("no such thing");
  await nav.getByText("Nothing matches “no such thing”.").waitFor();
  // The other operations on the page are checked below, because axe needs seconds for them.
  const operations = page.locator("main");
  await operations.evaluate(all => { all.hidden = true; });
  await person.accessible("a filter that finds nothing");
  await operations.evaluate(all => { all.hidden = false; });
  await filter.fill("websocket");
  await nav.getByRole("link", { name: "The messages of a session" }).click();
  await page.locator("#realtime_protocol").getByText("generation_ended", { exact: true }).waitFor();
  await filter.fill("");

  // The samples can create jobs.
  const section = page.locator(".operation").filter({ has: page.locator("h3 a[href^='#create_job']") }).filter({ has: page.locator("button[value='/v1/jobs/gen-latest']") });
  const sampleIn = async language => {
    await section.locator(".samples").getByRole("button", { name: language }).click();
    return section.locator(".samples code").textContent();
  };
  const run = async (program, ...args) => promisify(execFile)(program, args, { cwd: env.MEDIA, env: { ...process.env, CUTROOM_API_KEY: env.KEY } });
  const made = await run("sh", "-c", await sampleIn("curl"));
  check(JSON.parse(made.stdout).job_id.startsWith("job_"), `curl has made a job: ${made.stdout}`);
  const { stdout } = await run(process.execPath, "--input-type=module", "-e", await sampleIn("JavaScript"));
  check(stdout.includes("job_"), `JavaScript has made a job: ${stdout}`);
  // Start each language's interpreter only once, to parse all samples in that language.
  for (const [language, program, args] of [
    ["Python", "python3", ["-c", "import ast, json, sys\nfor text in json.load(open(sys.argv[1])): ast.parse(text, text)"]],
    ["JavaScript", process.execPath, ["--experimental-vm-modules", "-e", "for (const text of JSON.parse(fs.readFileSync(process.argv[1]))) new vm.SourceTextModule(text, { identifier: text })"]],
  ]) {
    await page.locator(".samples").first().getByRole("button", { name: language }).click();
    const texts = await page.locator(".operation:not(#realtime_protocol) .samples code").allTextContents();
    check(texts.length > 40, `the page has ${texts.length} samples in ${language}`);
    const name = join(env.SHOTS, `samples-${language}.json`);
    writeFileSync(name, JSON.stringify(texts));
    await run(program, ...args, name);
    rmSync(name);
  }
  const form = new FormData();
  form.append("file", new File([readFileSync(media("clip.mp4"))], "clip.mp4"));
  const stored = (await api("POST", "/v1/files", form)).body.id;
  await page.getByLabel("Key for “Try it”").fill(env.KEY);
  await section.getByText("Try it", { exact: true }).click();
  await section.getByLabel("data, stored").fill(stored);
  await section.getByLabel("prompt", { exact: true }).fill("film noir");
  await section.getByRole("button", { name: "Send" }).click();
  await section.locator(".outcome").filter({ hasText: "job_" }).waitFor();
  // All operations consist of the same elements, and axe needs seconds for all of them.
  const shown = await section.evaluate(one => {
    const others = [...document.querySelectorAll(".operation")].filter((other, number) => number % 4 && other !== one);
    for (const other of others) other.hidden = true;
    return document.querySelectorAll(".operation:not([hidden])").length;
  });
  check(shown > 10, `axe checks ${shown} operations`);
  await person.accessible("the page of the API");
  await page.evaluate(() => { for (const one of document.querySelectorAll(".operation")) one.hidden = false; });
  await person.shot("docs");
  await page.setViewportSize({ width: 390, height: 844 });
  await person.fits("the page of the API");
}

export async function files(visit) {
  for (let i = 0; i < 26; i++) {
    const form = new FormData();
    form.append("file", new File([`file ${i}`], `note-${i}.txt`));
    equal((await api("POST", "/v1/files", form)).status, 200, "storing a file");
  }
  const person = await visit({}), { page } = person;
  await person.signIn("files");
  await page.getByText("note-25.txt").waitFor();
  equal(await page.locator(".file").count(), 24, "files of a page");
  await page.getByRole("button", { name: "More files" }).click();
  await page.getByText("note-0.txt").waitFor();
  {
    const [chooser] = await Promise.all([page.waitForEvent("filechooser"), page.getByRole("button", { name: "Upload files" }).click()]);
    // Use other names than the media files have, because other flows store those at the same time.
    await chooser.setFiles([["clip.mp4", "video/mp4"], ["reference.jpg", "image/jpeg"]].map(([name, mimeType]) => ({ name: `own-${name}`, mimeType, buffer: readFileSync(media(name)) })));
    for (const name of ["own-clip.mp4", "own-reference.jpg"]) await page.locator(".file").filter({ hasText: name }).waitFor();
  }
  await page.locator(".thumb img").first().waitFor();
  // For its preview, the page fetches only a small part of the video. It fetches the rest when the video is played.
  let fetched = 0;
  page.on("request", request => { fetched += /\/v1\/uploads\/file_\w+$/.test(request.url()); });
  await page.reload();
  await page.locator(".file").filter({ hasText: "own-clip.mp4" }).locator(".thumb img").waitFor();
  await page.locator(".file").filter({ hasText: "own-reference.jpg" }).locator(".thumb img").waitFor();
  equal(fetched, 0, "stored files fetched for their pictures");
  await page.getByRole("button", { name: "Play own-clip.mp4" }).focus();
  await page.keyboard.press("Enter");
  await until("it plays in its card", () => page.locator(".thumb video[controls]").evaluate(video => video.currentTime > 0));
  const about = await page.locator(".file").filter({ hasText: "own-clip.mp4" }).textContent();
  check(about.includes("expires tomorrow") && about.includes("235 kB"), `a file says what it is: ${about}`);
  const stored = (await api("GET", "/v1/files?limit=1000")).body.files.find(file => file.filename === "own-clip.mp4");
  await page.getByRole("button", { name: "Copy the id of own-clip.mp4" }).click();
  equal(await page.evaluate(() => navigator.clipboard.readText()), stored.id, "the copied id");
  const [saved] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Download own-clip.mp4" }).click()]);
  equal(saved.suggestedFilename(), "own-clip.mp4", "the saved file's name");
  check(readFileSync(await saved.path()).equals(readFileSync(media("clip.mp4"))), "the saved file equals the stored one");
  await page.getByLabel("Keep").selectOption("until deleted");
  const [again] = await Promise.all([page.waitForEvent("filechooser"), page.getByRole("button", { name: "Upload files" }).click()]);
  await again.setFiles(media("garment.png"));
  await page.locator(".file").filter({ hasText: "garment.png" }).filter({ hasText: "kept until deleted" }).first().waitFor();
  await person.accessible("files");
  await person.shot("files");
  await page.emulateMedia({ colorScheme: "dark" });
  await person.accessible("files, dark");

  const gone = page.locator(".file").filter({ hasText: "note-25.txt" });
  await gone.getByRole("button", { name: "Delete note-25.txt" }).click();
  await person.accessible("a question");
  await page.getByRole("button", { name: "Keep" }).click();
  equal(await gone.count(), 1, "a persistent file");
  await gone.getByRole("button", { name: "Delete note-25.txt" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await gone.waitFor({ state: "detached" });
  const { body } = await api("GET", "/v1/files?limit=1000");
  check(!body.files.some(file => file.filename === "note-25.txt"), "the file is still there");

  // The buttons of each file stay within the file's card.
  const cut = await page.locator(".file").evaluateAll(all => all.filter(card => [...card.querySelectorAll("button")].some(one => one.getBoundingClientRect().right > card.getBoundingClientRect().right)).length);
  equal(cut, 0, "cards with clipped buttons");
  await page.getByLabel("Select note-24.txt").focus();
  await page.keyboard.press("Space");
  await page.getByLabel("Select note-20.txt").click({ modifiers: ["Shift"] });
  await page.getByText("5 selected").waitFor();
  await person.accessible("selected files");
  await person.shot("files-selected-dark");
  await page.keyboard.press("Delete");
  await page.getByRole("dialog").getByRole("button", { name: "Delete 5" }).click();
  await page.getByText("5 files were deleted.").first().waitFor();
  equal(await page.getByText(/^note-2[0-4]\.txt$/).count(), 0, "deleted files");

  // The edit form offers the stored files.
  await person.go("Edit");
  await page.getByRole("button", { name: "A stored image as the reference" }).click();
  const library = page.getByRole("dialog", { name: "Choose a stored image" });
  await until("they have pictures", async () => await library.locator("img").count() >= 2);
  await person.accessible("the stored images");
  await person.shot("library-dark");
  await library.getByRole("button", { name: /garment\.png/ }).first().focus();
  await page.keyboard.press("Enter");
  await page.locator(".chosen").filter({ hasText: "garment.png" }).getByRole("img").waitFor();
  await person.go("Files");

  await page.getByRole("button", { name: "Use own-reference.jpg as a reference image" }).click();
  await page.locator(".chosen").filter({ hasText: "own-reference.jpg" }).waitFor();
  await person.go("Files");
  await page.getByRole("button", { name: "Edit own-clip.mp4" }).click();
  await page.getByRole("button", { name: "Remove the file" }).waitFor();
  await page.getByLabel("Prompt", { exact: true }).fill("film noir");
  await page.getByRole("button", { name: "Run edit" }).click();
  await page.getByLabel("Boundary between the original").waitFor();
  await page.getByText("The same from a terminal").click();
  const line = await page.getByLabel("Submit this edit again", { exact: true }).textContent();
  check(/data=file_\w+/.test(line) && /reference_image=file_\w+/.test(line), `stored files go by their ids: ${line}`);
}

// An admin creates a key, sees it once, and revokes it. Users of other keys do not have the page.
export async function keys(visit) {
  const person = await visit({}), { page } = person;
  await person.signIn("keys");
  await page.locator(".keys li").filter({ hasText: "This tab's key" }).waitFor();
  await page.goto(`${env.URL}/console#gallery`);
  await person.go("Keys");
  await page.getByRole("button", { name: "Create a key" }).click();
  await page.goBack();
  await page.getByRole("heading", { name: "Gallery", level: 1 }).waitFor({ state: "attached" });
  equal(await page.getByRole("dialog").count(), 0, "dialogs after going back");
  await person.go("Keys");
  await page.getByRole("button", { name: "Create a key" }).click();
  await person.accessible("the form of a key");
  await page.getByLabel("Label").fill("a\tb");
  await page.getByRole("button", { name: "Create the key" }).click();
  await page.getByRole("alert").filter({ hasText: "label" }).waitFor();
  await page.getByLabel("Label").fill("render farm");
  await page.getByLabel("Expires").selectOption("In 7 days");
  await page.getByText("Calls: all").click();
  for (const group of ["files", "jobs"]) await page.getByRole("group", { name: "Calls" }).getByText(group, { exact: true }).click();
  await page.getByText("Models: all").click();
  await page.getByRole("group", { name: "Models" }).getByText("scribe").waitFor();
  await page.getByRole("group", { name: "Models" }).getByText("gen-2.5").click();
  await person.accessible("the limits of a key");
  await page.getByRole("button", { name: "Create the key" }).click();
  const shown = page.getByLabel("The new key");
  await shown.waitFor();
  await person.accessible("a new key");
  await person.shot("key-made");
  const secret = await shown.inputValue();
  await page.getByRole("button", { name: "Copy the key" }).click();
  equal(await page.evaluate(() => navigator.clipboard.readText()), secret, "the copied text");
  await page.getByRole("button", { name: "Done" }).click();
  const row = page.locator(".keys li").filter({ hasText: "render farm" });
  await row.filter({ hasText: "Expires soon" }).filter({ hasText: "expires in 7 days" }).filter({ hasText: "Models: gen-2.5 · Calls: jobs, files" }).waitFor();
  check(!(await page.content()).includes(secret), "the key is still on the page");
  await person.accessible("keys");
  await person.shot("keys");

  const other = await visit({}), plain = other.page;
  // A key that may not make the console's first requests can still log in.
  const { key: narrow } = (await api("POST", "/v1/keys", JSON.stringify({ label: "chats alone", routes: ["inference"] }))).body;
  const guest = await visit({});
  await guest.signIn("chat", narrow);
  await guest.page.getByLabel("Model", { exact: true }).selectOption("cutroom-echo");
  await guest.go("Gallery");
  await guest.page.getByRole("alert").filter({ hasText: "does not allow the routes" }).waitFor();

  await other.signIn("edit", secret);
  equal(await plain.getByRole("link", { name: "Keys" }).count(), 0, "admin pages for another key");
  await plain.evaluate(() => { location.hash = "keys"; });
  equal(await plain.locator(".page.keys").count(), 0, "key pages by URL");

  await row.getByRole("button", { name: "Revoke render farm" }).click();
  await page.getByRole("button", { name: "Keep" }).click();
  await row.getByRole("button", { name: "Revoke render farm" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Revoke" }).click();
  await page.getByText("Revoked (1)").click();
  await page.locator(".past li").filter({ hasText: "render farm" }).waitFor();
  await person.accessible("a revoked key");
  await person.shot("keys-revoked");
  await until("the key is rejected", async () => (await fetch(`${env.URL}/v1/files?limit=1`, { headers: { "x-api-key": secret } })).status === 401);
}

// An admin sets a budget for a key. The budget and the charts show the key's spending, and the audit log lists each
// change. Users without an admin key see only their usage.
export async function money(visit) {
  const made = (await api("POST", "/v1/keys", JSON.stringify({ label: "newsroom" }))).body;
  const ask = () => fetch(`${env.INFERENCE_URL}/v1/chat/completions`, { method: "POST", headers: { authorization: `Bearer ${made.key}` }, body: JSON.stringify({ model: "scribe", stream: true, messages: [{ role: "user", content: "Write." }] }) });
  const person = await visit({}), { page } = person;
  await person.signIn("budgets");
  await page.getByRole("button", { name: "Set a budget" }).click();
  await page.getByLabel("Limit EUR").waitFor();
  await person.accessible("the form of a budget");
  await page.getByLabel("Key", { exact: true }).selectOption("newsroom");
  await page.getByLabel("Limit").fill("1.1");
  await page.getByLabel("Webhook for warnings").fill("ftp://example.com/");
  await page.keyboard.press("Enter");
  await page.getByRole("alert").filter({ hasText: "warn_url" }).waitFor();
  await page.getByLabel("Webhook for warnings").fill("https://hooks.example/budgets");
  await page.keyboard.press("Enter");
  const row = page.locator(".budgets li").filter({ hasText: "newsroom" }), meter = row.getByRole("meter", { name: "newsroom, €1.10 a month" });
  await row.filter({ hasText: "€0.00 used, €1.10 left" }).filter({ hasText: "warns hooks.example" }).waitFor();

  // Four requests of 25 cents fit the budget, and the fifth does not.
  for (let i = 0; i < 4; i++) {
    await until("a call within the budget", async () => {
      const answer = await ask();
      await answer.text();
      return answer.status === 200;
    });
  }
  await until("the budget is nearly used up", async () => {
    await page.evaluate(() => document.dispatchEvent(new Event("visibilitychange")));
    return (await row.textContent()).includes("90 % used") && await meter.getAttribute("aria-valuenow") === "1.000664";
  });
  equal((await ask()).status, 429, "the status of a call over the budget");
  await person.accessible("budgets");
  await person.shot("budgets");

  await row.getByRole("button", { name: "Change the budget" }).click();
  equal(await page.getByLabel("Webhook for warnings").inputValue(), "https://hooks.example/budgets", "the budget's warning URL");
  await page.getByLabel("Limit").fill("0.5");
  await page.getByLabel("Webhook for warnings").fill("");
  await page.getByRole("button", { name: "Save" }).click();
  await row.filter({ hasNotText: "hooks.example" }).filter({ hasText: "Used up" }).filter({ hasText: "€0.50 a month" }).waitFor();
  equal(await page.evaluate(() => document.activeElement.dataset.act), "change", "the button with the focus is to");
  await page.getByRole("button", { name: "Set a budget" }).click();
  await page.getByLabel("Key", { exact: true }).selectOption("newsroom");
  await page.getByText("This budget replaces the budget of €0.50.").waitFor();
  await page.getByLabel("Of", { exact: true }).selectOption("Tokens");
  await page.getByLabel("Limit").fill("20000000000000000000");
  await page.getByRole("button", { name: "Set it" }).click();
  await page.getByRole("alert").filter({ hasText: "limit" }).waitFor();
  await page.getByRole("button", { name: "Cancel" }).click();
  await row.getByRole("button", { name: "Remove the budget" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Remove" }).click();
  await row.waitFor({ state: "detached" });

  // The Usage page shows the spending, also by key.
  await page.getByRole("navigation", { name: "Usage and Budgets" }).getByRole("link", { name: "Usage" }).click();
  await page.getByText("By key").click();
  await page.getByLabel("What to show").getByText("Cost").click();
  const chart = page.getByRole("slider", { name: "Cost by day" });
  await until("the chart shows what the key has cost", async () => {
    await page.evaluate(() => document.dispatchEvent(new Event("visibilitychange")));
    return /newsroom €1\.00|^[^;]*: €1\.00$/.test(await chart.getAttribute("aria-valuetext"));
  });
  await chart.focus();
  await page.keyboard.press("ArrowLeft");
  await page.keyboard.press("End");
  await page.locator(".tip").filter({ hasText: "newsroom" }).waitFor();
  await page.keyboard.press("Escape");
  await page.locator(".tip").waitFor({ state: "hidden" });
  await page.getByText(/^By day \(/).click();
  await page.getByRole("table", { name: "Usage by day and key" }).getByRole("row").filter({ hasText: "newsroom" }).filter({ hasText: "€1.00" }).waitFor();
  await person.accessible("usage by key");
  const [saved] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Download as CSV" }).click()]);
  const table = readFileSync(await saved.path(), "utf8");
  check(table.startsWith("day,key,requests") && table.includes(`${made.id},4,`) && table.includes(",1.000664,EUR,"), `the table that is saved: ${table}`);

  await person.go("Keys");
  await page.getByRole("navigation", { name: "Keys and Audit" }).getByRole("link", { name: "Audit" }).click();
  const changes = page.locator(".audit li").filter({ hasText: "newsroom" });
  await changes.filter({ hasText: "Budget removed" }).waitFor();
  for (const words of ["Key created", "Budget set", "limit 1.1 → 0.5"]) await changes.filter({ hasText: words }).first().waitFor();
  for (const limit of [/^limit 1.1$/, /^limit 0.5$/]) await changes.locator("summary").filter({ hasText: limit }).waitFor();
  await changes.getByText("limit 1.1 → 0.5").click();
  await changes.getByRole("row", { name: "limit 1.1 0.5" }).waitFor();
  await person.accessible("changes");
  // When the page is refreshed, everything that the user has opened stays open.
  const again = page.waitForResponse(/\/v1\/audit/);
  await page.evaluate(() => document.dispatchEvent(new Event("visibilitychange")));
  await again;
  await changes.getByRole("row", { name: "limit 1.1 0.5" }).waitFor();
  for (let limit = 1; limit <= 26; limit++) equal((await api("PUT", "/v1/budgets", JSON.stringify({ key: made.id, period: "day", unit: "jobs", limit }))).status, 200, "setting a budget");
  await page.reload();
  await changes.filter({ hasText: "limit 25 → 26" }).waitFor();
  equal(await page.locator(".audit li").count(), 25, "changes on a page");
  await page.getByRole("button", { name: "More changes" }).click();
  await changes.filter({ hasText: "Key created" }).waitFor();
  check(await page.evaluate(() => document.activeElement.closest("li").previousElementSibling), "the focus is on the first of the next page");
  await page.getByRole("textbox", { name: "To", exact: true }).fill("2020-01-01");
  await page.getByText("No changes on these days.").waitFor();

  const other = await visit({}), plain = other.page;
  await other.signIn("usage", made.key);
  await plain.getByLabel("What to show").getByText("Cost").waitFor();
  for (const words of ["Budgets", "Keys", "By key"]) equal(await plain.getByText(words, { exact: true }).count(), 0, `${words} that another key sees`);
  await plain.evaluate(() => { location.hash = "budgets"; });
  await plain.locator(".page.edit").waitFor();
  equal(await plain.locator(".page.budgets").count(), 0, "budget pages by URL");
}

export async function realtime(visit) {
  const person = await visit({}), { page } = person;
  await person.context.grantPermissions(["camera"], { origin: env.URL });
  await person.signIn("realtime");
  const live = page.frameLocator("iframe");
  await live.getByText("Camera", { exact: true }).click();
  await live.getByRole("button", { name: "Connect" }).click();
  await live.locator("body[data-state=open]").waitFor();
  await until("edited pictures arrive", async () => +(await live.locator("#rate").textContent()) > 0);
  await person.accessible("a session's frame");
  await person.accessible("a session", page.frames()[1]);
  await person.shot("realtime");
  // The session ends when the user leaves its page.
  await person.go("Chat");
  await until("the session is freed", async () => (await api("GET", "/v1/realtime/quota")).body.active === 0);
}

export async function screens(visit) {
  const person = await visit({ width: 390, height: 844, hasTouch: true, isMobile: true }), { page } = person;
  await person.signIn();
  for (const scheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme: scheme, reducedMotion: "reduce" });
    for (const title of ["Edit", "Gallery", "Files", "Chat", "Realtime", "Usage", "Budgets", "Keys", "Audit"]) {
      if (title === "Budgets" || title === "Audit") await page.getByRole("navigation", { name: title }).getByRole("link", { name: title }).click();
      else await person.go(title);
      await page.getByRole("heading", { name: title, level: 1 }).waitFor({ state: "attached" });
      await person.fits(`${title}, ${scheme}`);
      await person.accessible(`${title}, ${scheme}`);
      await person.shot(`phone-${title.toLowerCase()}-${scheme}`);
    }
  }
  // The chosen color scheme persists, and also applies to the live page.
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const dark = await ground();
  await page.getByRole("button", { name: "Scheme:" }).click();
  check(await ground() !== dark, "the light scheme is not applied");
  await page.reload();
  await page.locator(".page.audit").waitFor();
  check(await ground() !== dark, "the light scheme is forgotten");
  await person.go("Realtime");
  await page.frameLocator("iframe").locator("html[data-theme=light]").waitFor();
}

// All controls can be reached with only the keyboard.
export async function keyboard(visit) {
  const person = await visit({}), { page } = person;
  await person.signIn();
  await page.evaluate(() => document.activeElement.blur());
  const reached = new Set();
  for (let i = 0; i < 80; i++) {
    await page.keyboard.press("Tab");
    reached.add(await page.evaluate(() => {
      const one = document.activeElement;
      return one.className === "skip" ? "skip" : one.name || one.id || one.textContent;
    }));
  }
  for (const name of ["skip", "Edit", "Gallery", "Files", "Chat", "Realtime", "Usage", "Keys", "scheme", "sign-out", "mode", "choose", "prompt", "Reference image", "model", "seed", "Run edit"]) {
    check(reached.has(name), `${name} is not reached by Tab, but ${[...reached].join(", ")}`);
  }
}

// Any picture can be dropped on the Files page. The page shows who made it and whether it was changed, and does not
// store it.
export async function verified(visit) {
  const person = await visit({}), { page } = person;
  await person.signIn("files");
  await page.getByRole("button", { name: "Verify a file" }).click();
  const dialog = page.getByRole("dialog"), verdict = dialog.locator(".verdict strong");
  await dialog.waitFor();
  equal(await page.evaluate(() => document.activeElement.textContent), "Choose a file", "the focus is on");
  const choose = async name => {
    const [chooser] = await Promise.all([page.waitForEvent("filechooser"), dialog.getByRole("button", { name: "Choose a file" }).click()]);
    await chooser.setFiles(name);
  };
  for (const [name, words] of [["signed.png", "Unchanged, but the signer is not verified"], ["changed.png", "Changed since it was signed"]]) {
    await choose(join(env.SIGNED, name));
    await dialog.getByRole("heading", { name }).waitFor();
    await verdict.filter({ hasText: words }).waitFor();
    const facts = await dialog.locator("dl").textContent();
    for (const fact of ["edited by AI", "model gen-image-2", "engine an engine", "Cutroom", "SHA-256"]) check(facts.includes(fact), `of ${name} it says ${fact}: ${facts}`);
    await person.accessible(name);
    await person.shot(`verified-${name}`);
  }
  await page.emulateMedia({ colorScheme: "dark" });
  await page.setViewportSize({ width: 360, height: 740 });
  await person.accessible("in the dark, on a phone");
  await person.fits("what was verified");
  await person.shot("verified-narrow-dark");
  // If a file is dropped on the dialog, the page below does not store it.
  const dropped = await page.evaluateHandle(bytes => {
    const carried = new DataTransfer();
    carried.items.add(new File([new Uint8Array(bytes)], "dropped.png", { type: "image/png" }));
    return carried;
  }, [...readFileSync(media("garment.png"))]);
  await dialog.dispatchEvent("drop", { dataTransfer: dropped });
  await verdict.filter({ hasText: "No Content Credentials" }).waitFor();
  // If several files are dropped, the dialog names the one that it verifies. A later file replaces it.
  const several = await page.evaluateHandle(() => {
    const carried = new DataTransfer();
    carried.items.add(new File([new Uint8Array(8 << 20)], "first.mp4", { type: "video/mp4" }));
    carried.items.add(new File(["two"], "second.png", { type: "image/png" }));
    return carried;
  });
  const stopped = page.waitForEvent("requestfailed", { predicate: one => one.method() === "POST" && one.url().endsWith("/v1/files") });
  const network = await page.context().newCDPSession(page);
  await network.send("Network.enable");
  await network.send("Network.emulateNetworkConditions", { offline: false, latency: 0, downloadThroughput: -1, uploadThroughput: 100_000 });
  await dialog.dispatchEvent("drop", { dataTransfer: several });
  await dialog.getByText("Only the first of 2 files is verified.").waitFor();
  await dialog.getByRole("heading", { name: "first.mp4" }).waitFor();
  await dialog.dispatchEvent("drop", { dataTransfer: dropped });
  await stopped;
  await dialog.getByRole("heading", { name: "dropped.png" }).waitFor();
  await verdict.filter({ hasText: "No Content Credentials" }).waitFor();
  const mine = async () => (await api("GET", "/v1/files?limit=1000")).body.files.filter(file => ["signed.png", "changed.png", "dropped.png", "first.mp4"].includes(file.filename));
  await until("no file is stored", async () => (await mine()).length === 0);
  await dialog.getByRole("button", { name: "Close" }).click();
  await dialog.waitFor({ state: "detached" });
}
