// Flows of the Edit page.

import { execFile } from "node:child_process";
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { api, check, env, equal, media, until, Wire } from "./world.mjs";

const choose = async (page, file) => {
  const [chooser] = await Promise.all([page.waitForEvent("filechooser"), page.locator("#choose").click()]);
  await chooser.setFiles(media(file));
};

// drop drops files on an element.
async function drop(page, selector, files, type) {
  const all = [files].flat().map(file => [readFileSync(media(file)).toString("base64"), file]);
  const transfer = await page.evaluateHandle(([all, type]) => {
    const transfer = new DataTransfer();
    for (const [base64, name] of all) transfer.items.add(new File([Uint8Array.from(atob(base64), letter => letter.charCodeAt(0))], name, { type }));
    return transfer;
  }, [all, type]);
  for (const event of ["dragenter", "dragover", "drop"]) await page.dispatchEvent(selector, event, { dataTransfer: transfer });
}

// jobOf returns the id of the job whose result is shown.
const jobOf = async page => new URL(page.url()).hash.split("/")[2];
const isDone = async page => await page.locator(".edit .download").count() === 1;

export async function video(visit) {
  const person = await visit({ moving: true }), { page } = person;
  await person.signIn();
  await person.accessible("the empty page");
  await page.getByRole("button", { name: "Run edit" }).click();
  equal(await page.locator("#form-problem").textContent(), "Add a file first.", "a run without a file shows");
  await choose(page, "clip.mp4");
  await page.getByLabel("Prompt", { exact: true }).fill("a watercolor painting");
  await page.getByLabel("Seed", { exact: true }).fill("4294967296");
  await page.getByRole("button", { name: "Run edit" }).click();
  check((await page.locator("#form-problem").textContent()).startsWith("A seed is"), "a seed out of range is reported");
  await page.locator("#result-size").filter({ hasText: /^Result: \d+x\d+, \d+ frames per second(, [\d.]+ seconds)?\.$/ }).waitFor();
  const planned = await page.locator("#result-size").textContent();
  await page.getByLabel("Seed", { exact: true }).fill("7");
  await page.getByRole("button", { name: "Run edit" }).click();
  await page.locator(".working").waitFor();
  const split = page.getByLabel("Boundary between the original");
  await split.waitFor();
  const { planned: { width, height, fps } } = (await api("GET", `/v1/jobs/${await jobOf(page)}`)).body;
  check(planned.startsWith(`Result: ${width}x${height}, ${fps} frames per second`), `the size shown before the run is ${planned}`);

  // The comparison's divider can be moved with the keyboard and with the pointer.
  const at = () => page.locator(".compare").evaluate(box => parseFloat(box.style.getPropertyValue("--split")));
  await split.focus();
  await page.keyboard.press("Home");
  equal(await at(), 0, "Home puts the line at");
  for (let i = 0; i < 4; i++) await page.keyboard.press("ArrowRight");
  equal(await at(), 2, "four steps to the right put the line at");
  const box = await page.locator(".compare").boundingBox();
  await page.mouse.move(box.x + box.width * 0.02, box.y + box.height / 2);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.7, box.y + box.height / 2, { steps: 4 });
  await page.mouse.up();
  check(Math.abs(await at() - 70) < 2, `the line follows the pointer, but is at ${await at()}`);

  // Both videos play in sync.
  await until("both videos play", () => page.locator(".compare video").evaluateAll(all => all.length === 2 && all.every(one => !one.paused && one.currentTime > 0)));
  await page.getByRole("button", { name: "Pause" }).click();
  await page.getByLabel("Position").fill("0.5");
  await until("both videos are where they were put", () => page.locator(".compare video").evaluateAll(([a, b]) => a.currentTime > 1 && Math.abs(a.currentTime - b.currentTime) < 0.1));
  await person.accessible("a result");
  await person.shot("edit");

  const [download] = await Promise.all([page.waitForEvent("download"), page.locator(".edit .download").click()]);
  equal(download.suggestedFilename(), "clip-a-watercolor-painting.mp4", "a download is named after the source and the prompt");
  const bytes = readFileSync(await download.path());
  const first = await jobOf(page);
  const served = await fetch(`${env.URL}/v1/jobs/${first}/content`, { headers: { "x-api-key": env.KEY } });
  check(bytes.equals(Buffer.from(await served.arrayBuffer())), "the download differs from the result");

  // The shown command for a terminal makes the same edit.
  await page.getByText("The same from a terminal").click();
  await page.getByRole("button", { name: "Copy: Submit this edit again" }).click();
  const line = await page.evaluate(() => navigator.clipboard.readText());
  check(!line.includes(env.KEY) && line.includes("$CUTROOM_API_KEY"), `the line must name the key and not show it: ${line}`);
  const { stdout } = await promisify(execFile)("sh", ["-c", line], { cwd: env.MEDIA, env: { ...process.env, CUTROOM_API_KEY: env.KEY } });
  const { body } = await api("GET", `/v1/jobs/${JSON.parse(stdout).job_id}`);
  equal(body.seed, 7, "the command's job has the seed");
  // The generated programs make the same edit too.
  const programs = mkdtempSync(join(tmpdir(), "programs-"));
  copyFileSync(media("clip.mp4"), join(programs, "clip.mp4"));
  await page.getByRole("group").getByText("JavaScript", { exact: true }).click();
  writeFileSync(join(programs, "edit.mjs"), await page.getByLabel("The same edit in JavaScript", { exact: true }).textContent());
  await promisify(execFile)(process.execPath, ["edit.mjs"], { cwd: programs, env: { ...process.env, CUTROOM_API_KEY: env.KEY } });
  check(readFileSync(join(programs, "clip-a-watercolor-painting.mp4")).equals(bytes), "the program's result differs");
  await page.getByRole("group").getByText("Python", { exact: true }).click();
  writeFileSync(join(programs, "edit.py"), await page.getByLabel("The same edit in Python", { exact: true }).textContent());
  await promisify(execFile)("python3", ["-c", "import ast, sys; ast.parse(open(sys.argv[1]).read())", join(programs, "edit.py")]);
  rmSync(programs, { recursive: true });
  await page.getByText("The record as JSON").click();
  equal(JSON.parse(await page.getByLabel("The job's record", { exact: true }).textContent()).seed, 7, "the seed of the record");
  await person.accessible("a result's programs");
  await person.shot("edit-programs");

  // "Another seed" repeats the edit whose result is shown, even if the form has changed since.
  await page.getByLabel("Prompt", { exact: true }).fill("film noir");
  await page.getByLabel("Model", { exact: true }).selectOption("gen-2.1");
  await page.getByRole("button", { name: "Another seed" }).click();
  await until("another run", async () => await jobOf(page) && await jobOf(page) !== first);
  await until("another result", () => isDone(page));
  const again = (await api("GET", `/v1/jobs/${await jobOf(page)}`)).body;
  check(again.seed !== 7, "the seed is new");
  equal(again.model, "gen-2.5", "the model is the result's");
  equal(await page.locator(`.recent [data-id="${again.job_id}"] .name`).textContent(), "a watercolor painting", "the prompt is the result's");
  await page.locator(`.recent [data-id="${first}"]`).click();
  await until("the first result is shown again", async () => await isDone(page) && await jobOf(page) === first);
  await page.goBack();
  await until("the browser goes back to the other result result", async () => await isDone(page) && await jobOf(page) === again.job_id);
  // A signed result is marked as signed.
  await page.route(`**/v1/jobs/${again.job_id}`, async route => {
    const answer = await route.fetch(), job = await answer.json();
    job.result.content_credentials = { source_type: "compositeWithTrainedAlgorithmicMedia", signed_by: "Example Films", signed_at: job.completed_at };
    return route.fulfill({ response: answer, json: job });
  });
  await page.reload();
  await page.getByLabel("Boundary between the original").waitFor();
  equal(await page.getByLabel("Prompt", { exact: true }).inputValue(), "film noir", "the text after a reload is");
  equal(await page.locator(".credentials").textContent(), "Content Credentials: edited by AI, signed by Example Films. Verify How", "the shown credentials");
  check((await page.locator(".credentials a").getAttribute("href")).endsWith("/docs#get_job_credentials"), "the link to verification");
}

// Each mode keeps its results.
export async function tabs(visit) {
  const person = await visit({ width: 1440 }), { page } = person;
  await person.signIn();
  await page.getByRole("button", { name: "Try it with a sample clip" }).click();
  await page.getByLabel("The original video").waitFor();
  const form = await page.getByRole("button", { name: "Run edit" }).boundingBox();
  check(form.y + form.height <= 900, `the form is in view beside a clip, but ends at ${form.y + form.height}`);
  const stage = await page.locator(".stage").boundingBox();
  check(Math.abs(stage.width / stage.height - 16 / 9) < 0.03, `the clip has no bars beside it, but is shown in ${stage.width}x${stage.height}`);
  await page.getByRole("button", { name: "Run edit" }).click();
  equal(await page.locator("#form-problem").textContent(), "Write what to change, or add a reference image.", "a run without a prompt shows");
  await page.getByLabel("Prompt", { exact: true }).fill("add a hat");
  await page.getByText("Nothing will be changed:").waitFor({ state: "attached" });
  await page.setViewportSize({ width: 390, height: 844 });
  const anyway = page.getByRole("button", { name: "Run anyway" });
  check(await anyway.evaluate(button => !button.classList.contains("primary") && getComputedStyle(button.parentElement).position === "static"), "“Run anyway” is as prominent as “Run edit”");
  await page.setViewportSize({ width: 1440, height: 900 });
  await anyway.click();
  await page.locator(".made .unchanged").waitFor();
  await page.getByRole("note").filter({ hasText: "Nothing was changed:" }).waitFor();
  equal(await page.getByRole("button", { name: "Another seed" }).count(), 0, "offers of another seed for an unchanged result");
  equal(await page.locator(".download.primary").count(), 0, "prominent downloads of an unchanged result");
  await person.shot("unchanged");
  equal(await page.locator(".recent [data-status=unchanged] .state").textContent(), "Unchanged", "the state of an unchanged result");
  equal(await page.getByLabel("Boundary between the original").count(), 0, "sliders of an unchanged result");
  await page.getByLabel("Prompt", { exact: true }).fill("film noir");
  await page.getByRole("button", { name: "Run edit" }).click();
  await page.getByLabel("Boundary between the original").waitFor();
  const address = page.url();
  await page.getByText("Text to video").click();
  equal(await page.getByLabel("Prompt", { exact: true }).inputValue(), "", "the prompt of another mode");
  check((await page.getByLabel("Prompt", { exact: true }).getAttribute("placeholder")).includes("scene"), "the texts are about making a video");
  await page.getByRole("button", { name: "Make video" }).waitFor();
  await page.getByText("Video", { exact: true }).click();
  await page.getByLabel("Boundary between the original").waitFor();
  equal(page.url(), address, "the result's URL");

  // A result can be used as the input of the next edit.
  await page.getByRole("button", { name: "Edit this result" }).click();
  await page.getByText(/^edited-job_/).first().waitFor();
  await page.getByLabel("Prompt", { exact: true }).fill("x".repeat(3500));
  await page.getByText("3,500 of 4,000 characters").waitFor();
  await page.getByLabel("Prompt", { exact: true }).fill("x".repeat(4001));
  await page.getByRole("button", { name: /^Run / }).click();
  check((await page.locator("#form-problem").textContent()).includes("4,001 characters"), "a prompt that is too long is reported, not cut");
}

// A file is trimmed before it is uploaded.
export async function cutting(visit) {
  const person = await visit({}), { page } = person;
  await person.signIn();
  await page.getByRole("button", { name: "Try it with a sample clip" }).click();
  await page.getByRole("button", { name: "Trim and crop" }).click();
  const dialog = page.getByRole("dialog");
  await until("the length is known", async () => +await dialog.locator("#cut-to").inputValue() > 3);
  await dialog.locator("#cut-from").fill("1");
  await dialog.locator("#cut-to").fill("2.5");
  await dialog.getByLabel("Part of the picture").selectOption("Square");
  await person.accessible("cutting");
  await person.shot("cutting");
  await dialog.getByRole("button", { name: "Cut", exact: true }).click();
  await dialog.waitFor({ state: "detached" });
  await page.getByText("sample-cut.mp4").waitFor();
  await until("the part is shown", () => page.getByLabel("The original video").evaluate(video => video.videoWidth === video.videoHeight && Math.abs(video.duration - 1.5) < 0.2));
  await page.getByLabel("Prompt", { exact: true }).fill("sepia");
  await page.getByRole("button", { name: "Run edit" }).click();
  await page.getByLabel("Boundary between the original").waitFor();
  const { body } = await api("GET", `/v1/jobs/${await jobOf(page)}`);
  equal(body.result.width, body.result.height, "the result's sides");

  await page.getByRole("button", { name: "New edit" }).click();
  await page.getByRole("button", { name: "Trim and crop" }).click();
  await until("a frame is shown", () => dialog.locator("video").evaluate(video => video.readyState > 1));
  await dialog.getByRole("button", { name: "Take this frame" }).click();
  await page.getByText("sample-cut-frame.png").waitFor();
  await page.getByRole("button", { name: "Crop", exact: true }).click();
  await dialog.getByLabel("Part of the picture").selectOption("Tall, 9:16");
  await dialog.getByRole("button", { name: "Crop", exact: true }).click();
  await page.getByText("sample-cut-frame-crop.png").waitFor();
  await until("the crop is shown", () => page.getByRole("img", { name: "The original image" }).evaluate(image => image.naturalHeight > image.naturalWidth));
}

// All edits can be found, viewed, compared, shared and deleted in the gallery.
export async function gallery(visit) {
  const person = await visit({ moving: true }), { page } = person;
  for (const prompt of ["sepia in the gallery", "anime in the gallery"]) {
    const form = new FormData();
    form.append("data", new File([readFileSync(media("clip.mp4"))], "harbour.mp4"));
    form.append("prompt", prompt);
    const { body } = await api("POST", "/v1/jobs/gen-latest", form);
    await until("the job is done", async () => (await api("GET", `/v1/jobs/${body.job_id}`)).body.status === "completed");
  }
  await person.signIn("jobs");
  await page.getByLabel("Search").fill("gallery harbour");
  const found = page.locator(".job");
  await until("the address has the search", () => page.url().endsWith("#jobs?q=gallery+harbour"));
  await until("the search finds both", async () => await found.count() === 2);
  await until("each has a picture, and one of before", async () => await page.locator(".job .thumb img").count() === 4);
  await person.accessible("the gallery");
  await person.shot("gallery");
  for (const box of await page.getByLabel(/^Select .*gallery/).all()) await box.check({ force: true });
  await page.getByRole("link", { name: "Compare 2" }).click();
  await until("both play in step", () => page.locator(".side-one video").evaluateAll(all => all.length === 2 && all.every(one => one.currentTime > 0)));
  await page.goBack();
  await page.getByRole("link", { name: /sepia in the gallery/ }).click();
  await page.getByLabel("The edited video").waitFor();
  await page.locator("details.asked summary").click();
  await page.locator(".facts-list").getByText("harbour.mp4").waitFor();
  await page.getByRole("button", { name: "Full screen" }).click();
  await until("the picture fills the screen, in its proportions", () => page.locator(".stage:fullscreen .compare").evaluate(box => Math.abs(box.clientWidth / box.clientHeight - 16 / 9) < 0.02 && box.getBoundingClientRect().bottom <= innerHeight && box.clientWidth > innerWidth * 0.9));
  await person.shot("full-screen");
  await page.keyboard.press("Escape");
  await page.evaluate(() => document.fullscreenElement && document.exitFullscreen());
  await person.accessible("an edit of the gallery");
  await person.shot("gallery-edit");

  // A public link works without a key.
  await page.getByRole("button", { name: "Share this result" }).click();
  await person.accessible("the dialog for a link");
  await page.getByLabel("Expires").selectOption("in an hour");
  await page.getByRole("button", { name: "Create the link" }).click();
  const link = await page.getByLabel("The link", { exact: true }).inputValue();
  const served = await fetch(link);
  equal(`${served.status} ${served.headers.get("content-type")}`, "200 video/mp4", "the link's target");
  await served.body.cancel();
  await page.getByRole("button", { name: "Close" }).click();
  await page.getByRole("button", { name: "Use these settings" }).click();
  await page.locator(".page.edit").waitFor();
  equal(await page.getByLabel("Prompt", { exact: true }).inputValue(), "sepia in the gallery", "the used settings");
  await page.goBack();
  await page.getByRole("button", { name: "Delete this edit" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await page.getByText("The edit was deleted.").waitFor();
  equal((await fetch(link)).status === 200, false, "the link still works after the deletion");
  await page.getByRole("searchbox").fill("nothing like it");
  await page.getByRole("heading", { name: "No matches" }).waitFor();
  // A click still works if the list is refreshed while the button is pressed.
  await page.getByRole("button", { name: "Show all edits" }).hover();
  await page.mouse.down();
  const read = page.waitForResponse(/\/v1\/jobs\?/);
  await page.getByRole("searchbox").dispatchEvent("input");
  await (await read).finished();
  await page.locator(".jobs-grid:not([aria-busy])").waitFor({ state: "attached" });
  await page.mouse.up();
  await page.getByRole("link", { name: /anime in the gallery/ }).waitFor();
  equal(await page.getByRole("link", { name: /sepia in the gallery/ }).count(), 0, "deleted edits");
}

// After one confirmation several edits are deleted, using only the keyboard. Failures are reported, and the edits
// that could not be deleted stay.
export async function several(visit) {
  const ids = [];
  for (let i = 0; i < 4; i++) {
    const { body } = await api("POST", "/v1/jobs/gen-pro-t2v", new URLSearchParams({ prompt: `one of several ${i}` }));
    equal((await api("DELETE", `/v1/jobs/${body.job_id}`)).status, 200, "cancelling a job");
    ids.push(body.job_id);
  }
  const person = await visit({ width: 1440 }), { page } = person;
  await person.signIn("jobs?q=one+of+several");
  const cards = page.locator(".job"), bar = page.getByRole("group", { name: "Selected edits" });
  await until("the search finds all", async () => await cards.count() === 4);
  await page.getByLabel("Select one of several 3").focus();
  await page.keyboard.press("Space");
  await bar.getByText("1 selected").waitFor();
  await page.keyboard.press("Escape");
  await bar.waitFor({ state: "hidden" });
  await page.keyboard.press("Space");
  await page.getByLabel("Select one of several 1").focus();
  await page.keyboard.press("Shift+Space"); // selects all edits between the two
  await bar.getByText("3 selected").waitFor();
  await person.accessible("a selection");
  await person.shot("selection");
  await page.emulateMedia({ colorScheme: "dark" });
  await person.accessible("a selection, dark");
  await page.route(`**/v1/jobs/${ids[2]}?purge=true`, route => route.fulfill({ status: 503, json: { detail: "The store is not there." } }));
  await page.keyboard.press("Delete");
  const question = page.getByRole("dialog");
  await question.getByText("Delete 3 edits?").waitFor();
  await person.accessible("the dialog for several edits");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter"); // the button "Delete 3"
  const report = page.getByRole("alert").filter({ hasText: "1 of 3 edits could not be deleted, and is still selected" });
  await report.filter({ hasText: "one of several 2: The store is not there." }).waitFor();
  await person.accessible("failed deletions");
  await person.shot("selection-failed-dark");
  equal(await cards.count(), 2, "remaining edits");
  equal(await page.evaluate(() => document.activeElement.closest(".job") !== null), true, "the focus is in the list");
  await page.unroute(`**/v1/jobs/${ids[2]}?purge=true`);
  await page.setViewportSize({ width: 390, height: 844 });
  await page.getByRole("button", { name: "Select all shown" }).click();
  await person.fits("a selection on a phone");
  await person.shot("selection-phone");
  await bar.getByRole("button", { name: "Delete", exact: true }).click();
  await question.getByRole("button", { name: "Delete 2" }).click();
  await page.getByRole("heading", { name: "No matches" }).waitFor();
  equal(await report.count(), 0, "earlier errors");
  for (const id of ids) equal((await api("GET", `/v1/jobs/${id}`)).status, 404, "a deleted job's status");
}

// A search with few hits stops after a few pages. The user can continue it.
export async function furtherSearch(visit) {
  const person = await visit({}), { page } = person;
  let asked = 0;
  const pages = 67, job = { job_id: "job_far", model: "gen-2.5", status: "failed", progress: 0, seed: 1, prompt: "a needle", created_at: new Date(Date.now() - 86400e3).toISOString(), error: { code: "cancelled", message: "" } };
  await page.route(/\/v1\/jobs\?.*q=needle/, route => {
    const at = +(new URL(route.request().url()).searchParams.get("cursor") || 0) + 1;
    asked++;
    return route.fulfill({ json: { jobs: at === 20 ? [job] : [], next_cursor: at < pages ? String(at) : null } });
  });
  await person.signIn("jobs?q=needle");
  await page.getByRole("heading", { name: "No matches so far" }).waitFor();
  check(asked <= 4, `a search asks for ${asked} pages at first`);
  await page.getByText("Older edits have not been searched yet.").waitFor();
  await person.accessible("a search that can continue");
  await person.shot("search-further");
  const further = page.getByRole("button", { name: "Search further" });
  await further.focus();
  await page.keyboard.press("Enter");
  await until("it goes on", () => asked === 12);
  await until("it is done with that", () => page.locator(".jobs-grid:not([aria-busy])").count());
  equal(await page.evaluate(() => document.activeElement.textContent), "Search further", "the focus is on");
  await page.keyboard.press("Enter");
  await page.getByRole("link", { name: /a needle/ }).waitFor();
  await until("the search ends", async () => asked === 28);
  // After a change in another tab, only a few requests are made, and the edits that were found stay.
  await page.evaluate(() => document.dispatchEvent(new Event("visibilitychange")));
  await until("the list is loaded again", () => asked === 32);
  await until("it is done with that", () => page.locator(".jobs-grid:not([aria-busy])").count());
  equal(await page.locator(".job").count(), 1, "found edits");
  for (let wanted; await further.isVisible(); ) {
    wanted = Math.min(asked + 16, asked + pages);
    await further.click();
    await until("it goes on", async () => asked >= wanted || !await further.isVisible());
  }
  equal(asked, pages + 4, "requests of the entire search");
}

// Before and after an edit, the page shows which parts of the prompt are followed. It offers no option that has no
// effect.
export async function honest(visit) {
  const person = await visit({ width: 1440 }), { page } = person;
  await person.signIn();
  await page.getByRole("button", { name: "Try it with a sample clip" }).click();
  const offered = await page.getByRole("group", { name: "Examples" }).getByRole("button").allTextContents();
  check(offered.includes("blur the background"), `edits are offered, and not only looks: ${offered}`);
  await page.getByLabel("Prompt", { exact: true }).fill("watercolor, add a hat");
  const hints = page.getByRole("list", { name: "What will happen" });
  await hints.getByText("watercolor", { exact: true }).waitFor();
  await hints.getByText("“add a hat”").waitFor();
  await page.getByText("Not followed by this engine").click();
  const how = page.locator("details.how");
  await how.getByText("“add a hat” will change nothing.").waitFor();
  equal((await how.textContent()).split("CUTROOM_ENGINE").length - 1, 0, "mentions of the setting");
  check((await how.getByRole("link", { name: "How to set up a generative model" }).getAttribute("href")).endsWith("/docs#get_engine"), "the link to the setup");
  const idle = page.getByLabel("Anchor to the first edited frame");
  equal(await idle.isVisible(), false, "a switch without effect is shown");
  await drop(page, "#prompt", "garment.png", "image/png");
  await until("the switch has an effect with a reference image", () => idle.isVisible());
  await page.getByRole("button", { name: "Remove the reference image" }).click();
  await person.accessible("hints");
  await person.shot("hints");
  await page.getByRole("button", { name: "Run edit" }).click();
  await page.getByLabel("Boundary between the original").waitFor();
  await page.getByRole("note").filter({ hasText: "add a hat" }).waitFor();
  await page.getByRole("list", { name: "Parts of the prompt that were followed" }).getByText("watercolor").waitFor();
  await page.getByText("preview engine").first().waitFor();
  await person.accessible("a notice");
  await person.shot("notice");

  await page.getByRole("link", { name: /^All \d+ looks$/ }).click();
  await page.getByLabel("Search looks").fill("Aquarell");
  await page.getByRole("button", { name: "watercolor" }).locator("img").waitFor();
  check(page.url().endsWith("#looks?q=aquarell"), `the address has the search: ${page.url()}`);
  await page.getByLabel("Search looks").fill("");
  await until("every picture is shown", () => page.locator(".look img").evaluateAll(all => all.length > 20 && all.slice(0, 6).every(one => one.naturalWidth > 0)));
  for (const prompt of offered.concat(await page.getByRole("group", { name: "Smaller changes" }).getByRole("button").allTextContents())) {
    const { body } = await api("POST", "/v1/understand", JSON.stringify({ model: "gen-2.5", prompt }));
    check(body.understood.length && !body.ignored.length, `the offered prompt “${prompt}” is not understood`);
  }
  await person.accessible("looks");
  await person.shot("looks");
  await page.getByRole("button", { name: "film noir" }).click();
  await page.locator(".page.edit").waitFor();
  equal(await page.getByLabel("Prompt", { exact: true }).inputValue(), "film noir", "the chosen look");
}

// One form can start edits by several models, seeds and files, which run concurrently.
export async function sideBySide(visit) {
  const person = await visit({ moving: true }), { page } = person;
  await person.signIn();
  await page.getByRole("button", { name: "Try it with a sample clip" }).click();
  await page.getByLabel("Prompt", { exact: true }).fill("sepia");
  await page.getByLabel("Results").selectOption("2");
  await page.getByText("Compare with other models").click();
  await page.getByLabel("gen-restyle-2").check();
  await person.accessible("a form for several runs");
  await page.getByRole("button", { name: "Run 4 edits" }).click();
  await until("all four are done", async () => await page.locator(".recent [data-status=done]").count() === 4);
  await person.shot("runs");
  await page.getByRole("link", { name: "Side by side" }).click();
  await until("all play in step", () => page.locator(".side-one video").evaluateAll(all => all.length === 5 && all.every(one => one.currentTime > 0)));
  const seeds = await page.locator(".side-one figcaption").allTextContents();
  equal(new Set(seeds.map(text => /seed (\d+)/.exec(text)?.[1]).filter(Boolean)).size, 2, "the seeds of both models");
  await person.accessible("results side by side");
  await person.shot("side-by-side");
  await person.go("Edit");
  await drop(page, ".stage", ["clip.mp4", "clip.mp4"], "video/mp4");
  equal(await page.locator(".chosen-files li").count(), 2, "files of two dropped");
}

export async function image(visit) {
  const person = await visit({ width: 390, height: 844, scheme: "dark", hasTouch: true, isMobile: true }), { page } = person;
  await person.signIn();
  await person.fits("the empty page");
  check(await page.locator(".stage").evaluate(stage => stage.scrollHeight <= stage.clientHeight + 1), "an offer of the empty page is cut off");
  await page.getByRole("button", { name: "Choose a video" }).waitFor(); // a phone cannot drop files
  await drop(page, ".stage", "reference.jpg", "image/jpeg");
  equal(await page.getByLabel("Model", { exact: true }).inputValue(), "gen-image-2", "an image chooses the model");
  await drop(page, ".stage", "reference.jpg", "text/plain");
  const report = await page.locator("#form-problem").boundingBox(), bar = await page.getByRole("navigation", { name: "Pages" }).boundingBox();
  check(report.y > 0 && report.y + report.height <= bar.y, `what is wrong is in view, but is at ${report.y}`);
  await drop(page, "#prompt", "garment.png", "image/png");
  await page.getByRole("img", { name: "The reference image" }).waitFor();
  await page.getByRole("button", { name: "pencil sketch" }).click();
  await page.getByRole("button", { name: "Run edit" }).click();
  await page.getByLabel("Boundary between the original").waitFor();
  const stage = await page.locator(".stage").boundingBox();
  check(stage.y >= 44 && stage.y < 300, `the result is in view, but begins at ${stage.y}`);
  await page.getByText("The same from a terminal").click();
  const line = await page.getByLabel("Submit this edit again", { exact: true }).textContent();
  check(line.includes("-F data=@reference.jpg") && line.includes("-F reference_image=@garment.png"), `the line names both files: ${line}`);
  await person.fits("an image's result");
  await person.accessible("an image's result, dark");
  await page.evaluate(() => scrollTo(0, 0));
  await person.shot("edit-phone-dark");
}

// Behind a transparent result is a checkerboard, and not the original.
export async function transparent(visit) {
  const person = await visit({}), { page } = person;
  await person.signIn();
  const { stdout: buffer } = await promisify(execFile)("ffmpeg", ["-v", "error", "-i", media("person.mp4"), "-frames:v", "1", "-f", "image2pipe", "-c:v", "png", "-"], { encoding: "buffer" });
  await page.locator(".work > input[type=file]").setInputFiles({ name: "person.png", mimeType: "image/png", buffer });
  await page.getByRole("button", { name: "remove the background" }).click();
  await page.getByRole("button", { name: "Run edit" }).click();
  await page.getByLabel("Boundary between the original").waitFor();
  await person.accessible("a transparent result");
  await person.shot("transparent");
  const box = await page.locator(".compare").boundingBox();
  const corner = await page.screenshot({ clip: { x: box.x + box.width - 50, y: box.y + 80, width: 40, height: 40 } });
  const colors = await page.evaluate(async bytes => {
    const picture = await createImageBitmap(new Blob([Uint8Array.from(bytes)])), canvas = new OffscreenCanvas(40, 40).getContext("2d");
    canvas.drawImage(picture, 0, 0);
    const { data } = canvas.getImageData(0, 0, 40, 40);
    return [...new Set(Array.from({ length: 1600 }, (_, i) => data.slice(4 * i, 4 * i + 3).join()))];
  }, [...corner]);
  check(colors.includes("201,201,201") && colors.includes("244,244,244"), `the corner has the colors ${colors.slice(0, 10).join("; ")}`);
}

export async function textToVideo(visit) {
  const person = await visit({}), { page } = person;
  await person.signIn();
  await page.getByText("Text to video").click();
  await page.getByRole("button", { name: "Make video" }).click();
  equal(await page.locator("#form-problem").textContent(), "This model needs a prompt.", "a run without a prompt shows");
  await page.getByLabel("Prompt", { exact: true }).fill("aurora over the mountains");
  await page.getByLabel("Orientation").selectOption("portrait");
  await page.keyboard.press("Tab");
  await page.getByLabel("Prompt", { exact: true }).press("Enter");
  await page.getByLabel("The edited video").waitFor();
  await until("it is portrait", () => page.getByLabel("The edited video").evaluate(video => video.videoHeight > video.videoWidth && video.videoWidth > 0));
  equal(await page.locator(".split").count(), 0, "no comparison is offered");
}

export async function imageToVideo(visit) {
  const person = await visit({}), { page } = person;
  await person.signIn();
  await drop(page, ".stage", "reference.jpg", "image/jpeg");
  await page.getByLabel("Model", { exact: true }).selectOption("gen-pro-i2v");
  await page.getByRole("button", { name: "Last image" }).waitFor();
  await page.getByLabel("Resolution").selectOption("480p");
  await page.getByRole("button", { name: "Make video" }).click(); // the prompt is optional
  const video = page.getByLabel("The edited video");
  await video.waitFor();
  await until("it plays", () => video.evaluate(video => video.videoWidth > 0 && video.duration > 0.8));
  equal(await page.locator(".split").count(), 0, "no comparison is offered");
}

export async function cancelled(visit) {
  const person = await visit({}), { page } = person;
  await person.signIn();
  await drop(page, ".stage", "clip.mp4", ""); // no media type, as on a system that does not know the file extension
  await page.getByLabel("Model", { exact: true }).selectOption("gen-2.1");
  await page.getByLabel("Prompt", { exact: true }).fill("golden hour");
  await page.getByRole("button", { name: "Run edit" }).click();
  await page.locator(".phase").filter({ hasText: "Editing" }).waitFor();
  await page.getByRole("button", { name: "Cancel", exact: true }).click();
  await page.getByRole("heading", { name: "Cancelled" }).waitFor();
  equal(await page.locator(".stage [role=alert]").count(), 0, "alerts about a cancelled edit");
  const button = page.locator(".recent [data-status=cancelled]");
  await button.first().waitFor();
  const { body } = await api("GET", `/v1/jobs/${await button.first().getAttribute("data-id")}`);
  equal(body.error?.code, "cancelled", "the job's error");
  equal(await page.getByRole("button", { name: "Run edit" }).isEnabled(), true, "another edit can start");
}

// After a reload, a run is still shown, with its remaining time.
export async function reloaded(visit) {
  const person = await visit({}), { page } = person;
  await person.signIn();
  await choose(page, "clip.mp4");
  await page.getByLabel("Model", { exact: true }).selectOption("gen-2.1");
  await page.getByLabel("Prompt", { exact: true }).fill("snowy winter");
  await page.getByRole("button", { name: "Run edit" }).click();
  await page.locator(".phase").filter({ hasText: "Editing" }).waitFor();
  const id = await jobOf(page);
  await page.reload();
  await page.locator(".phase").filter({ hasText: "Editing" }).waitFor();
  equal(await jobOf(page), id, "the shown run after a reload");
  await page.getByLabel("The original video").waitFor(); // this browser has stored the original
  await page.locator(".share").filter({ hasText: /^[1-9]\d* % · (a moment|about [\d.]+ (s|min).*) left/ }).waitFor();
  check(await page.getByLabel("Progress").evaluate(bar => bar.value > 0 && bar.value < 1), "the bar shows the progress");
  await page.locator(".stage .preview").waitFor(); // the preview appears behind the button
  await person.shot("run-reloaded");
  await page.getByRole("button", { name: "Cancel", exact: true }).click();
  await page.getByRole("heading", { name: "Cancelled" }).waitFor();
  await page.reload();
  await page.getByRole("heading", { name: "Cancelled" }).waitFor();
  equal(await page.getByLabel("Prompt", { exact: true }).inputValue(), "snowy winter", "the written text");
}

// If models have prices, the form shows the cost of the runs that it would start, and each run shows its own cost.
export async function prices(visit) {
  const person = await visit({}), { page } = person;
  await person.signIn();
  await choose(page, "clip.mp4"); // the clip lasts four seconds
  const cost = page.locator("#cost");
  equal(await cost.textContent(), "", "the cost of a model without a price");
  await page.getByLabel("Model", { exact: true }).selectOption("gen-2.1");
  await page.locator("#model-about").filter({ hasText: "€0.05 per second" }).waitFor();
  await cost.filter({ hasText: /^Costs about €0\.20$/ }).waitFor();
  await page.getByLabel("Results").selectOption("3");
  await cost.filter({ hasText: /^Costs about €0\.60$/ }).waitFor();
  await page.getByLabel("Results").selectOption("1");
  await cost.filter({ hasText: /^Costs about €0\.20$/ }).waitFor();
  await person.accessible("a form with a price");
  await page.getByLabel("Prompt", { exact: true }).fill("film noir");
  await page.getByRole("button", { name: "Run edit" }).click();
  await page.locator(".share").filter({ hasText: /about €0\.20/ }).waitFor();
  await person.shot("cost");
  await page.setViewportSize({ width: 390, height: 844 });
  await page.emulateMedia({ colorScheme: "dark" });
  await person.fits("a run with its cost");
  await person.accessible("a run with its cost, dark");
  await person.shot("cost-phone-dark");
  await page.setViewportSize({ width: 1360, height: 900 });
  await page.getByRole("button", { name: "Cancel", exact: true }).click();
  await page.getByRole("heading", { name: "Cancelled" }).waitFor();
  await page.getByText("Text to video").click();
  await cost.filter({ hasText: /^Costs about €1\.50$/ }).waitFor();
  await page.getByLabel("Prompt", { exact: true }).fill("rain that costs");
  await page.getByRole("button", { name: "Make video" }).click();
  await page.locator(".share").filter({ hasText: /about €1\.50/ }).waitFor();
  await page.getByRole("button", { name: "Cancel", exact: true }).click();
  await page.getByRole("heading", { name: "Cancelled" }).waitFor();
  // Without a file, only the price per second is known.
  await page.getByText("Video", { exact: true }).first().click();
  await page.getByRole("button", { name: "New edit" }).click();
  await page.getByRole("button", { name: "Remove the file" }).click();
  await cost.filter({ hasText: "Costs €0.05 per second" }).waitFor();
}

// For a file that is too large for a form, the page first computes a checksum, with progress, and then uploads the
// file.
export async function large(visit) {
  const person = await visit({}), { page } = person;
  await page.route("**/config.json", async route => {
    const answer = await route.fetch();
    return route.fulfill({ response: answer, json: { ...await answer.json(), max_upload: 1000 } });
  }, { times: 1 });
  await person.signIn("files");
  await page.evaluate(() => {
    window.states = [];
    new MutationObserver(() => document.querySelectorAll(".uploads .note").forEach(note => window.states.push(note.textContent))).observe(document.querySelector(".uploads"), { childList: true, subtree: true, characterData: true });
  });
  const [chooser] = await Promise.all([page.waitForEvent("filechooser"), page.getByRole("button", { name: "Upload files" }).click()]);
  await chooser.setFiles({ name: "large.bin", mimeType: "application/octet-stream", buffer: Buffer.alloc(9 << 20, "words") });
  await page.getByLabel("Select large.bin").waitFor({ state: "attached" });
  const states = await page.evaluate(() => window.states);
  check(states.some(state => /^Reading [1-9]\d? %$/.test(state)), `reading shows how far it is: ${[...new Set(states)]}`);
  check(states.some(state => /^Uploading/.test(state)), `the upload shows how far it is: ${[...new Set(states)]}`);
  await person.go("Edit");
  await page.locator(".work > input[type=file]").setInputFiles({ name: "long.mp4", mimeType: "video/mp4", buffer: readFileSync(media("clip.mp4")) });
  await page.getByLabel("Prompt", { exact: true }).fill("film noir");
  await page.getByRole("button", { name: "Run edit" }).click();
  await page.getByLabel("Boundary between the original").waitFor();
}

// After an interrupted upload, the form still has its values for another attempt. If the connection breaks later, the
// edit is resumed.
export async function lostConnection(visit) {
  const wire = await Wire.lay();
  try {
    const person = await visit({ url: wire.url }), { page } = person;
    await person.signIn();
    await choose(page, "clip.mp4");
    await page.getByLabel("Prompt", { exact: true }).fill("film noir");
    wire.cutAfter = 100_000;
    await page.getByRole("button", { name: "Run edit" }).click();
    await page.getByText("The upload was interrupted.").waitFor();
    await person.accessible("an interrupted upload");
    await person.shot("interrupted");
    wire.mend();
    wire.cutAt = "/events";
    await page.getByRole("button", { name: "Try again" }).click();
    await page.locator(".phase").filter({ hasText: "The connection was lost" }).waitFor();
    wire.mend();
    await page.getByLabel("Boundary between the original").waitFor();
    equal(await page.getByLabel("Prompt", { exact: true }).inputValue(), "film noir", "the prompt is still");
  } finally {
    wire.close();
  }
}

// A connection that is lost without an error is detected in every phase of an edit.
export async function silentConnection(visit) {
  const wire = await Wire.lay();
  try {
    const person = await visit({ url: wire.url }), { page } = person;
    await page.clock.install();
    await person.signIn();
    await choose(page, "clip.mp4");
    await page.getByLabel("Prompt", { exact: true }).fill("film noir");
    const asked = request => page.waitForRequest(one => request.test(`${one.method()} ${new URL(one.url()).pathname}`));
    // The last bytes may be sent only after the clock was advanced, and restart the page's timer.
    const passes = async (request, time, press, noticed) => {
      const begun = asked(request);
      await press();
      await begun;
      await until("the lost connection is noticed", async () => {
        await page.clock.fastForward(time);
        return noticed.isVisible();
      });
    };
    wire.holdAt = "POST /v1/jobs/";
    await passes(/^POST .v1.jobs./, 125_000, () => page.getByRole("button", { name: "Run edit" }).click(),
      page.getByText("The upload was interrupted."));
    wire.mend();
    wire.holdAt = "/events";
    await passes(/events$/, 65_000, () => page.getByRole("button", { name: "Try again" }).click(),
      page.locator(".phase").filter({ hasText: "The connection was lost" }));
    wire.mend();
    await page.clock.fastForward(5_000);
    await page.getByLabel("Boundary between the original").waitFor();
  } finally {
    wire.close();
  }
}

// If the browser cannot show a file, the page shows the service's picture of it: before, during and after the edit.
export async function unplayable(visit) {
  const person = await visit({}), { page } = person;
  await person.signIn();
  for (const [name, kind, model] of [["photo.heic", "image", "gen-image-2"], ["take.mov", "video", "gen-restyle-2"]]) {
    const shown = selector => until(`${selector} shows ${name}`, () => page.locator(selector).evaluateAll(all => all.length > 0 && all.every(one => one.naturalWidth > 0)));
    await page.locator(".work > input[type=file]").setInputFiles(join(env.SIGNED, name));
    await shown(`.stage img[alt="The original ${kind}"]`);
    await page.getByLabel("Model", { exact: true }).selectOption(model);
    await page.getByLabel("Prompt", { exact: true }).fill("film noir");
    await page.getByRole("button", { name: "Run edit" }).click();
    await page.getByLabel("Boundary between the original").waitFor();
    await shown(`.compare img[alt="The original ${kind}"]`);
    const { body } = await api("GET", "/v1/files");
    check(!body.files.some(file => file.filename === name), `${name} is stored only for its picture`);
    await page.getByRole("button", { name: "New edit" }).click();
  }
}

// The page shows the service's error message.
export async function refused(visit) {
  const person = await visit({}), { page } = person;
  await person.signIn();
  await page.locator(".work > input[type=file]").setInputFiles({ name: "notes.mp4", mimeType: "video/mp4", buffer: Buffer.from("these are no pictures") });
  await page.locator(".stage").filter({ hasText: "cannot show the file" }).waitFor();
  await page.getByLabel("Prompt", { exact: true }).fill("film noir");
  await page.getByRole("button", { name: "Run edit" }).click();
  const alert = page.locator(".stage [role=alert]");
  await alert.waitFor();
  const report = await alert.textContent();
  check(report.includes("The file must be a video") && !report.includes("data:"), `it says what is wrong, in words: ${report}`);
  equal(await page.getByRole("button", { name: "Try again" }).count(), 0, "offers to repeat an edit that cannot succeed");
  await page.getByRole("button", { name: "Back", exact: true }).click();
  await page.locator(".work > input[type=file]").setInputFiles({ name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("words") });
  check((await page.locator("#form-problem").textContent()).includes("neither a video nor an image"), "a text is rejected on the page");
  await page.getByLabel("Model", { exact: true }).selectOption("gen-restyle-2");
  await page.getByLabel("Prompt", { exact: true }).fill("");
  await page.getByRole("button", { name: "Run edit" }).click();
  equal(await page.locator("#form-problem").textContent(), "Write a prompt, or add a reference image.", "a restyle without either shows");
}
