// Flows of the page Edit.

import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { promisify } from "node:util";
import { api, check, env, equal, media, patience, until, Wire } from "./world.mjs";

const choose = async (page, file) => {
  const [chooser] = await Promise.all([page.waitForEvent("filechooser"), page.locator("#choose").click()]);
  await chooser.setFiles(media(file));
};

// drop lets go of a file over an element.
async function drop(page, selector, file, type) {
  const transfer = await page.evaluateHandle(([base64, name, type]) => {
    const transfer = new DataTransfer();
    transfer.items.add(new File([Uint8Array.from(atob(base64), letter => letter.charCodeAt(0))], name, { type }));
    return transfer;
  }, [readFileSync(media(file)).toString("base64"), file, type]);
  for (const event of ["dragenter", "dragover", "drop"]) await page.dispatchEvent(selector, event, { dataTransfer: transfer });
}

// jobOf returns the job whose result is shown.
const jobOf = async page => (await page.locator("#download").getAttribute("download")).split(".")[0];

export async function video(visit) {
  const person = await visit({}), { page } = person;
  await person.signIn();
  await person.accessible("the empty page");
  await page.getByRole("button", { name: "Run edit" }).click();
  equal(await page.locator("#form-problem").textContent(), "Add a file first.", "a run without a file says");
  await choose(page, "clip.mp4");
  await page.getByLabel("Prompt", { exact: true }).fill("a watercolor painting");
  await page.getByLabel("Seed", { exact: true }).fill("4294967296");
  await page.getByRole("button", { name: "Run edit" }).click();
  check((await page.locator("#form-problem").textContent()).startsWith("A seed is"), "a seed out of range is told");
  await page.getByLabel("Seed", { exact: true }).fill("7");
  await page.getByRole("button", { name: "Run edit" }).click();
  await page.locator(".working").waitFor();
  const split = page.getByLabel("Where the original ends");
  await split.waitFor();

  // By keyboard and by pointer.
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

  // Both videos play, together.
  await until("both videos play", () => page.locator(".compare video").evaluateAll(all => all.length === 2 && all.every(one => !one.paused && one.currentTime > 0)));
  await page.getByRole("button", { name: "Pause" }).click();
  await page.getByLabel("Position").fill("0.5");
  await until("both videos are where they were put", () => page.locator(".compare video").evaluateAll(([a, b]) => a.currentTime > 1 && Math.abs(a.currentTime - b.currentTime) < 0.1));
  await person.accessible("a result");
  await person.shot("edit");

  const [download] = await Promise.all([page.waitForEvent("download"), page.locator("#download").click()]);
  const bytes = readFileSync(await download.path());
  const first = await jobOf(page);
  const served = await fetch(`${env.URL}/v1/jobs/${first}/content`, { headers: { "x-api-key": env.KEY } });
  check(bytes.equals(Buffer.from(await served.arrayBuffer())), "what is downloaded is not the result");

  // The line for a terminal gives the same edit.
  await page.getByText("The same from a terminal").click();
  await page.getByRole("button", { name: "Copy: Submit the same edit" }).click();
  const line = await page.evaluate(() => navigator.clipboard.readText());
  check(!line.includes(env.KEY) && line.includes("$CUTROOM_API_KEY"), `the line must name the key and not show it: ${line}`);
  const { stdout } = await promisify(execFile)("sh", ["-c", line], { cwd: env.MEDIA, env: { ...process.env, CUTROOM_API_KEY: env.KEY } });
  const { body } = await api("GET", `/v1/jobs/${JSON.parse(stdout).job_id}`);
  equal(body.seed, 7, "the line's job has the seed");

  await page.getByRole("button", { name: "Run again with another seed" }).click();
  await until("another result", async () => await page.locator("#download").count() === 1 && await jobOf(page) !== first);
  const again = await api("GET", `/v1/jobs/${await jobOf(page)}`);
  check(again.body.seed !== 7, "the seed is another one");
  await page.locator(".recent li").nth(2).waitFor();
  equal(await page.locator(`.recent [data-id="${first}"] .name`).textContent(), "a watercolor painting", "the first edit is listed as");
  await page.locator(`.recent [data-id="${first}"]`).click();
  await until("the first result is shown again", async () => await page.locator("#download").count() === 1 && await jobOf(page) === first);
}

export async function image(visit) {
  const person = await visit({ width: 390, height: 844, scheme: "dark", hasTouch: true, isMobile: true }), { page } = person;
  await person.signIn();
  await person.fits("the empty page");
  await drop(page, ".stage", "reference.jpg", "image/jpeg");
  equal(await page.getByLabel("Model").inputValue(), "gen-image-2", "an image chooses the model");
  await drop(page, ".stage", "reference.jpg", "image/heic");
  const told = await page.locator("#form-problem").boundingBox(), bar = await page.getByRole("navigation", { name: "Pages" }).boundingBox();
  check(told.y > 0 && told.y + told.height <= bar.y, `what is wrong is in view, but is at ${told.y}`);
  await drop(page, "#prompt", "garment.png", "image/png");
  await page.getByRole("img", { name: "The reference image" }).waitFor();
  await page.getByRole("button", { name: "pencil sketch" }).click();
  await page.getByRole("button", { name: "Run edit" }).click();
  await page.getByLabel("Where the original ends").waitFor();
  const stage = await page.locator(".stage").boundingBox();
  check(stage.y >= 44 && stage.y < 300, `the result is in view, but begins at ${stage.y}`);
  await page.getByText("The same from a terminal").click();
  const line = await page.getByLabel("Submit the same edit", { exact: true }).textContent();
  check(line.includes("-F data=@reference.jpg") && line.includes("-F reference_image=@garment.png"), `the line names both files: ${line}`);
  await person.fits("an image's result");
  await person.accessible("an image's result, dark");
  await page.evaluate(() => scrollTo(0, 0));
  await person.shot("edit-phone-dark");
}

export async function textToVideo(visit) {
  const person = await visit({}), { page } = person;
  await person.signIn();
  await page.getByText("Text to video").click();
  await page.getByRole("button", { name: "Run edit" }).click();
  equal(await page.locator("#form-problem").textContent(), "This model needs a prompt.", "a run without a prompt says");
  await page.getByLabel("Prompt", { exact: true }).fill("aurora over the mountains");
  await page.getByLabel("Orientation").selectOption("portrait");
  await page.keyboard.press("Tab");
  await page.getByLabel("Prompt", { exact: true }).press("Enter");
  await page.getByLabel("The edited video").waitFor();
  await until("it is portrait", () => page.getByLabel("The edited video").evaluate(video => video.videoHeight > video.videoWidth && video.videoWidth > 0));
  equal(await page.locator(".split").count(), 0, "there is nothing to compare with");
}

export async function cancelled(visit) {
  const person = await visit({}), { page } = person;
  await person.signIn();
  await drop(page, ".stage", "clip.mp4", ""); // as by a system that does not know the ending
  await page.getByLabel("Model").selectOption("gen-2.1");
  await page.getByRole("button", { name: "Run edit" }).click();
  await page.getByText("Editing", { exact: true }).waitFor();
  await page.getByRole("button", { name: "Cancel" }).click();
  await page.getByText("Original", { exact: true }).waitFor();
  const button = page.locator(".recent li button").filter({ hasText: "Cancelled" });
  await button.first().waitFor();
  const { body } = await api("GET", `/v1/jobs/${await button.first().getAttribute("data-id")}`);
  equal(body.error?.code, "cancelled", "the job's error");
  equal(await page.getByRole("button", { name: "Run edit" }).isEnabled(), true, "another edit can be run");
}

// An upload that is cut off in the middle leaves all in place to try again, and a
// connection that is lost later is taken up again.
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
    const submitted = page.waitForResponse(answer => answer.request().method() === "POST" && answer.url().includes("/v1/jobs/") && answer.ok(), { timeout: patience });
    await page.getByRole("button", { name: "Try again" }).click();
    await submitted;
    wire.cut();
    await page.locator(".phase").filter({ hasText: "The connection is lost" }).waitFor();
    wire.mend();
    await page.getByLabel("Where the original ends").waitFor();
    equal(await page.getByLabel("Prompt", { exact: true }).inputValue(), "film noir", "the prompt is still");
  } finally {
    wire.close();
  }
}

// What the service refuses is told in its words.
export async function refused(visit) {
  const person = await visit({}), { page } = person;
  await person.signIn();
  await page.locator(".work > input[type=file]").setInputFiles({ name: "notes.mp4", mimeType: "video/mp4", buffer: Buffer.from("these are no pictures") });
  await page.getByRole("button", { name: "Run edit" }).click();
  const alert = page.locator(".stage [role=alert]");
  await alert.waitFor();
  check((await alert.textContent()).includes("data: The file is not"), `it says which field is wrong, and how: ${await alert.textContent()}`);
  await page.getByRole("button", { name: "Back" }).click();
  await page.locator(".work > input[type=file]").setInputFiles({ name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("words") });
  check((await page.locator("#form-problem").textContent()).includes("neither a video nor an image"), "a text is refused on the page");
  await drop(page, ".stage", "reference.jpg", "image/heic");
  check((await page.locator("#form-problem").textContent()).includes("JPEG or PNG"), "a HEIC picture is refused with what to do");
  await page.getByLabel("Model").selectOption("gen-restyle-2");
  await page.getByRole("button", { name: "Run edit" }).click();
  equal(await page.locator("#form-problem").textContent(), "Write a prompt, or add a reference image.", "a restyle without either says");
}
