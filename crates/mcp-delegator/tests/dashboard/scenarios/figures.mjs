// Prints the figures of docs/reports/benchmarks.md; `cargo bench --bench dashboard` runs it.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ended, link, repository, run, serve, window, world } from "./driver.mjs";

const config = (text) => writeFileSync(join(world.variables.HOME, ".config/mcp-delegator/config.toml"), `verify_unsandboxed = true\n${text}`);

/** Resident memory and processor time of a process, in MiB and seconds. */
function usage(pid) {
  const memory = readFileSync(`/proc/${pid}/status`, "utf8").match(/VmRSS:\s+(\d+)/)[1] / 1024;
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1].split(" ");
  return { memory, seconds: (Number(fields[11]) + Number(fields[12])) / 100 };
}

/** Frames per second in five seconds, while the page is scrolled by this much in each frame. */
const frames = (page, step = 0) =>
  page.evaluate(async (step) => {
    const begin = performance.now();
    let [count, longest, last] = [0, 0, begin];
    while (performance.now() - begin < 5000) {
      await new Promise(requestAnimationFrame);
      window.scrollBy(0, step);
      const now = performance.now();
      [count, longest, last] = [count + 1, Math.max(longest, now - last), now];
    }
    return `${(count / 5).toFixed(0)} frames/s, longest ${longest.toFixed(0)} ms`;
  }, step);

export default async function () {
  config("max_concurrent = 500\n");
  repository();
  const large = ended("large");
  ended("improve the counter");
  const server = await serve();
  const page = await window("about:blank");
  let bytes = 0;
  page.on("requestfinished", async (request) => (bytes += (await request.sizes()).responseBodySize));
  await page.goto(server.link);
  await page.waitForSelector("#connection >> text=Live");
  console.log(`first page: ${(bytes / 1024).toFixed(1)} KiB`);

  await page.goto(`${server.url}/ui/tasks/${large}/diff`);
  let begin = Date.now();
  for (const file of await page.locator(".file summary").all()) await file.click();
  await page.waitForFunction(() => document.querySelectorAll(".l").length === 20_000);
  console.log(`diff of 20,000 lines, all files opened: ${Date.now() - begin} ms; scrolled: ${await frames(page, 400)}`);

  const running = [];
  for (let at = 0; at < 500; at += 1) running.push(run("exec", "wait for go").task_id);
  run("queue", "pause");
  for (let at = 0; at < 4500; at += 1) run("exec", `task ${at}`);
  begin = Date.now();
  await page.goto(server.url);
  await page.waitForSelector("li.task");
  console.log(`list of ${running.length + 4500 + 2} tasks: ${Date.now() - begin} ms to the first row`);
  let before = usage(server.child.pid);
  console.log(`500 tasks run, one page: ${await frames(page)}; scrolled: ${await frames(page, 400)}`);
  let after = usage(server.child.pid);
  console.log(`server: ${after.memory.toFixed(0)} MiB, ${(10 * (after.seconds - before.seconds)).toFixed(0)} % of a core`);
  const pages = [page];
  while (pages.length < 20) {
    const other = await page.context().newPage();
    await other.goto(server.url);
    pages.push(other);
  }
  for (let at = 0; at < 10; at += 1) (await window(link())).bringToFront();
  before = usage(server.child.pid);
  await new Promise((resolve) => setTimeout(resolve, 10_000));
  after = usage(server.child.pid);
  console.log(`20 pages and 10 windows: ${after.memory.toFixed(0)} MiB, ${(10 * (after.seconds - before.seconds)).toFixed(0)} % of a core`);
}
