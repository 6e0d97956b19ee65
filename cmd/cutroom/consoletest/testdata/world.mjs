// Code that the flows share: the browser, a user's visit, and a connection that can be cut.

import { createRequire } from "node:module";
import net from "node:net";
import { join } from "node:path";
import { readFileSync } from "node:fs";

export const env = process.env;
const require = createRequire(join(env.PACKAGES, "/"));
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
// These rules of axe take much time, and their findings are never serious.
const mild = ["aria-allowed-role", "heading-order", "landmark-unique", "presentation-role-conflict", "region"];

export const media = name => join(env.MEDIA, name);
export const patience = +env.PATIENCE || 120_000; // milliseconds

export const launch = () => chromium.launch({
  executablePath: env.CHROMIUM, timeout: patience,
  args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"],
});

export function check(condition, message) {
  if (!condition) throw new Error(message);
}

export function equal(got, want, what) {
  check(got === want, `${what}: got ${JSON.stringify(got)}, want ${JSON.stringify(want)}`);
}

// until waits until the condition is true, and fails after `patience`.
export async function until(what, condition) {
  for (const end = Date.now() + patience; Date.now() < end; await new Promise(resolve => setTimeout(resolve, 50))) {
    if (await condition()) return;
  }
  throw new Error(`${what}: not within ${patience / 1000} s`);
}

// Visit is one user in one tab. By default the user prefers reduced motion, because without a graphics card
// animations would take all processor time. The visit collects the page's errors in faults.
export class Visit {
  static async begin(browser, flow, { width = 1360, height = 900, scheme = "light", url = env.URL, moving = false, broken = () => {}, ...more } = {}) {
    const visit = new Visit();
    visit.flow = flow;
    visit.faults = [];
    visit.context = await browser.newContext({ viewport: { width, height }, colorScheme: scheme, reducedMotion: moving ? "no-preference" : "reduce", ...more });
    await visit.context.grantPermissions(["clipboard-read", "clipboard-write"], { origin: url });
    visit.context.setDefaultTimeout(patience);
    await visit.context.addInitScript(() => addEventListener("securitypolicyviolation", event => console.error(`policy: ${event.violatedDirective} ${event.blockedURI}`)));
    const page = visit.page = await visit.context.newPage();
    visit.url = url;
    const own = [url, env.INFERENCE_URL].map(one => new URL(one).origin);
    page.on("request", request => {
      const { protocol, origin } = new URL(request.url());
      if (protocol !== "blob:" && protocol !== "data:" && !own.includes(origin)) visit.faults.push(`asked for ${request.url()}`);
    });
    // If a resource is missing, the list of failed requests explains why.
    visit.missed = [];
    page.on("requestfailed", request => visit.missed.push(`${request.url()}: ${request.failure()?.errorText}`));
    page.on("response", answer => answer.status() >= 400 && visit.missed.push(`${answer.url()}: status ${answer.status()}`));
    page.on("pageerror", error => {
      visit.faults.push(`an error on the page: ${error.stack}`);
      broken(error);
    });
    page.on("console", message => {
      // Ignore the browser's log lines about error responses. Flows check the responses that matter.
      if (message.type() === "error" && !message.text().startsWith("Failed to load resource")) visit.faults.push(`on its console: ${message.text()}`);
    });
    return visit;
  }

  // forgive removes faults that the flow has caused itself.
  forgive(text) {
    this.faults = this.faults.filter(fault => !fault.includes(text));
  }

  async signIn(page = "edit", key = env.KEY) {
    await this.page.goto(`${this.url}/console/#${page}`);
    await this.page.getByLabel("API key").fill(key);
    await this.page.keyboard.press("Enter");
    await this.page.locator(`.page.${page.split(/[/?]/)[0]}`).waitFor();
  }

  go(title) {
    return this.page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: title }).click();
  }

  shot(name) {
    return env.TAKE_SHOTS === "true" && this.page.screenshot({ path: join(env.SHOTS, `${name}.png`) });
  }

  // accessible checks the current page's accessibility with axe.
  async accessible(what, frame = this.page) {
    // Wait for color transitions to end.
    await frame.evaluate(() => Promise.allSettled(document.getAnimations().filter(one => one.effect.getTiming().iterations !== Infinity).map(one => one.finished)));
    if (!await frame.evaluate(() => "axe" in window)) await frame.evaluate(axe);
    const options = { iframes: false, preload: false, resultTypes: ["violations"], rules: Object.fromEntries(mild.map(rule => [rule, { enabled: false }])) };
    const found = await frame.evaluate(async options => (await window.axe.run(document, options)).violations.filter(one => one.impact === "serious" || one.impact === "critical").map(one => `${one.id}: ${one.help}\n    ${one.nodes.map(node => `${node.html} ${node.any.map(part => part.message).join(" ")}`).join("\n    ")}`), options);
    check(found.length === 0, `axe, ${what}:\n  ${found.join("\n  ")}`);
  }

  // fits checks that no content is wider than the screen.
  async fits(what) {
    const beyond = await this.page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    check(beyond <= 0, `${what} is ${beyond} pixels wider than the screen`);
  }

  async end() {
    await this.context.close();
    check(this.faults.length === 0, this.faults.join("\n"));
  }
}

// api calls the media service directly, without the console.
export async function api(method, path, body) {
  const type = typeof body === "string" ? { "content-type": "application/json" } : {};
  const answer = await fetch(env.URL + path, { method, body, headers: { "x-api-key": env.KEY, ...type } });
  return { status: answer.status, body: await answer.json().catch(() => undefined) };
}

// Wire is a proxy between a browser and the service. While it is cut, no data passes. cutAfter is the number of bytes
// of each connection that still pass before the cut. A request for the path cutAt cuts it. While it is held, no data
// passes, but connections stay open.
export class Wire {
  static async lay() {
    const wire = new Wire();
    const target = new URL(env.URL);
    wire.cutAfter = Infinity;
    wire.ends = new Set();
    wire.server = net.createServer(near => {
      if (wire.cutAfter === 0) return near.destroy();
      const far = net.connect(target.port, target.hostname);
      let sent = 0;
      const both = [near, far];
      const close = () => both.forEach(end => end.destroy());
      both.forEach(end => {
        wire.ends.add(end);
        end.on("error", close).on("close", () => {
          wire.ends.delete(end);
          close();
        });
      });
      if (wire.held) both.forEach(end => end.pause());
      near.on("data", data => {
        sent += data.length;
        if (wire.cutAt && data.includes(wire.cutAt)) wire.cut();
        if (wire.holdAt && data.includes(wire.holdAt)) wire.hold();
        if (sent > wire.cutAfter) return close();
        if (!far.write(data)) near.pause();
      });
      far.on("drain", () => near.resume());
      far.pipe(near);
    });
    await new Promise(resolve => wire.server.listen(0, "127.0.0.1", resolve));
    wire.url = `http://127.0.0.1:${wire.server.address().port}`;
    return wire;
  }

  cut() {
    this.cutAfter = 0;
    this.ends.forEach(end => end.destroy());
  }

  hold() {
    this.held = true;
    this.ends.forEach(end => end.pause());
  }

  // mend lets new data pass. Data that was held back is lost.
  mend() {
    if (this.held) this.ends.forEach(end => end.destroy());
    this.cutAfter = Infinity;
    this.held = this.cutAt = this.holdAt = undefined;
  }

  close() {
    this.cut();
    this.server.close();
  }
}
