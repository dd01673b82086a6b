import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ensure, equal, exec, expectNoProblems, repository, run, serve, until, watch, window } from "./driver.mjs";

const nextTask = async (page, ...earlier) => {
  await page.waitForURL((url) => url.pathname.startsWith("/ui/tasks/T-") && !earlier.some((id) => url.pathname.includes(id)));
  const id = page.url().split("/").at(-1);
  run("wait", id);
  return run("show", id);
};

export default async function () {
  repository();
  const id = exec("wait for go", "--isolation", "worktree");
  await until("the agent has a worktree", () => run("worktrees").worktrees.length === 1);
  const dir = run("worktrees").worktrees[0].path;
  const file = join(dir, "app.js");
  const change = (from, to) => writeFileSync(file, readFileSync(file, "utf8").replace(from, to));
  change("let count = 0", "let count = 1");
  const server = await serve();
  const page = await window(server.link);
  await page.goto(`${server.url}/ui/tasks/${id}/diff`);
  await page.click("#diff .l.add .n:nth-child(2)");
  await page.fill(".comment textarea", "Why 1?");
  const tab = await page.context().newPage();
  watch(tab);
  await tab.goto(page.url());
  equal(await tab.inputValue(".comment textarea"), "Why 1?", "the comment in another tab");

  // The comment moves with its line, and is written on in another tab.
  change("// line 1\n", "// line 0\n// line 1\n");
  await page.waitForSelector('.comment textarea[aria-label="Comment on line 23 of app.js"]');
  await page.locator("textarea[data-draft]").focus();
  await tab.fill(".comment textarea", "Why 1? Name it total.");
  await tab.locator("textarea[data-draft]").focus();
  await page.waitForFunction(() => document.querySelector(".comment textarea").value.endsWith("total."));
  equal(await page.locator(".comment").count(), 1, "boxes of the comment");

  // What one tab has sent is no comment of the other one any more.
  writeFileSync(join(dir, "go"), "");
  await page.click("text=Request changes");
  const second = await nextTask(page, id);
  equal(second.ask, "app.js:23\n>   let count = 1;\nWhy 1? Name it total.", "the message");
  await tab.waitForSelector(".comment", { state: "detached" });

  // Without storage, comments last as long as the page, and the user is told.
  await tab.evaluate(() => {
    Storage.prototype.setItem = () => {
      throw new DOMException("full", "QuotaExceededError");
    };
  });
  await tab.locator("#diff .l.add .n:nth-child(2)").first().click();
  await tab.fill(".comment textarea", "Name it sum.");
  await tab.waitForSelector("#toast >> text=only as long as this page");
  await tab.press(".comment textarea", "Escape");
  ensure(await tab.locator("#toast").textContent() === "", "Escape removes the toast");
  await tab.click("text=Request changes");
  const third = await nextTask(tab, id, second.task_id);
  ensure(third.ask.endsWith("Name it sum."), `the comment is sent: ${third.ask}`);
  [page, tab].forEach(expectNoProblems);
}
