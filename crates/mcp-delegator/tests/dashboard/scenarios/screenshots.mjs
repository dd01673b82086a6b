// Draws the pages of docs/images.
import { join } from "node:path";
import { PHONE, ended, exec, installAsker, link, repository, run, serve, window, world } from "./driver.mjs";

export default async function () {
  repository();
  installAsker();
  const task = ended("Count from one, and export it", "--verify", "true", "--labels", "area=counter");
  ended("Find out why the failing test fails", "--verify", "false");
  const group = run("exec", "Let the counter count from a number", "--mode", "workspace-write", "--attempts", "3", "--verify", "true").group_id;
  run("wait", group);
  exec("Build all of it", "--agent", "asker", "--ask");
  exec("wait for go, then tidy up", "--isolation", "worktree");
  const server = await serve();
  const shoot = (page, name, options = {}) => page.screenshot({ path: join(world.images, `dashboard-${name}.png`), ...options });
  const desktop = { viewport: { width: 1100, height: 760 } };

  const page = await window(link(), desktop);
  await page.waitForSelector(".question");
  await page.waitForSelector("li.task >> text=step");
  await shoot(page, "tasks");
  await page.goto(`${server.url}/ui/tasks/${task}/diff?view=split`);
  await page.waitForSelector("#connection >> text=Live");
  await page.click('.file[data-path="app.js"] .l.add .n');
  await page.fill(".comment textarea", "Why 1? Name the constant, please.");
  await page.evaluate(() => window.scrollTo(0, 150));
  await shoot(page, "review");
  await page.goto(`${server.url}/ui/groups/${group}`);
  await page.waitForSelector("#connection >> text=Live");
  await shoot(page, "attempts");

  const dark = await window(link(), { ...desktop, colorScheme: "dark" });
  await dark.goto(`${server.url}/ui/tasks/${task}`);
  await dark.waitForSelector("#connection >> text=Live");
  await shoot(dark, "dark");

  const phone = await window(link("--scope", "answer"), { viewport: PHONE, deviceScaleFactor: 2, isMobile: true, hasTouch: true });
  await phone.waitForSelector(".question");
  await phone.waitForSelector("#connection >> text=Live");
  await shoot(phone, "phone");
}
