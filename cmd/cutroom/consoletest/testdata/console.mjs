// Runs every flow (a test of one user's path through the console), a few concurrently. For each it prints a line of
// JSON: {flow, failure}.

import { join } from "node:path";
import { env, launch, Visit } from "./world.mjs";
import * as edits from "./edits.mjs";
import * as pages from "./pages.mjs";

const flows = { ...edits, ...pages };
const lanes = 3;

const browser = await launch();
// FLOW names the flows to run, separated by commas. By default all run.
const wanted = env.FLOW?.split(",");
const waiting = Object.keys(flows).filter(name => !wanted || wanted.includes(name));

async function run(name) {
  let failure = "";
  const visits = [];
  // An error on a page ends the flow, because the page may then never show what the flow waits for.
  let broken;
  const breaks = new Promise((_, reject) => { broken = reject; });
  const visit = async options => {
    const one = await Visit.begin(browser, name, { ...options, broken });
    visits.push(one);
    return one;
  };
  try {
    await Promise.race([flows[name](visit), breaks]);
  } catch (error) {
    failure = String(error.stack || error);
    for (const [i, one] of visits.entries()) {
      failure += `\nAt ${one.page.url()}. What the page did not get: ${one.missed.slice(-10).join("; ") || "nothing"}.`;
      await one.page.screenshot({ path: join(env.SHOTS, `failure-${name}-${i}.png`), timeout: 10_000 }).catch(() => {});
    }
  }
  for (const one of visits) await one.end().catch(error => { failure += `\n${error.message}`; });
  console.log(JSON.stringify({ flow: name, failure }));
}

await Promise.all(Array.from({ length: lanes }, async () => {
  while (waiting.length) await run(waiting.shift());
}));
await browser.close();
