import { ended, ensure, equal, expectNoProblems, read, repository, run, serve, window } from "./driver.mjs";

export default async function () {
  repository();
  const first = ended("improve the counter");
  ended("another task");
  const server = await serve();
  const page = await window(server.link);
  await page.waitForSelector("#connection >> text=Live");
  const press = async (...keys) => {
    for (const key of keys) await page.keyboard.press(key);
  };
  const focused = () => page.evaluate(() => (document.activeElement === document.body ? "" : document.activeElement.textContent));
  await press("j", "j");
  equal(await focused(), "improve the counter", "the second task has the focus");
  await press("Enter");
  await page.waitForURL(`**/ui/tasks/${first}`);
  await page.waitForSelector("#connection >> text=Live");
  await press("?");
  await page.waitForSelector("dialog[open] >> text=comment on the line");
  // Who is disturbed by single letters switches them off.
  await page.uncheck("dialog input");
  await press("Escape", "?");
  equal(await page.locator("dialog[open]").count(), 0, "dialogs without keys");
  await page.click("button[data-dialog=keys]");
  await page.check("dialog input");
  await press("Escape", "d");
  await page.waitForURL(`**/ui/tasks/${first}/diff`);
  await page.waitForSelector("#connection >> text=Live");
  for (let at = 0; at < 20 && !(await focused()).includes("let count = 1"); at += 1) await press("j");
  ensure((await focused()).includes("let count = 1"), "the changed line has the focus");
  // A file that is viewed is folded, and the keys go on behind it.
  await press("[", "[", "[");
  await press("j");
  await press("v", "j");
  ensure((await focused()).length > 0, "the focus is on the next line");
  await press("[", "[", "[", "v");
  for (let at = 0; at < 20 && !(await focused()).includes("let count = 1"); at += 1) await press("j");
  await press("c");
  await page.keyboard.type("Name it total.");
  await press("Escape");
  ensure((await focused()).includes("let count = 1"), "the focus is back on the line");
  await press("r");
  await page.keyboard.type("Please.");
  await press("Control+Enter");
  await page.waitForURL((url) => url.pathname.startsWith("/ui/tasks/") && !url.pathname.includes(first));
  const second = page.url().split("/").at(-1);
  run("wait", second);
  await page.waitForSelector("text=Apply …");
  // The buttons are reached by Tab.
  for (let at = 0; at < 40 && (await focused()) !== "Apply …"; at += 1) await press("Tab");
  equal(await focused(), "Apply …");
  await press("Enter");
  await page.waitForSelector("dialog[open] form");
  equal(await focused(), "Apply", "what confirms has the focus");
  await press("Enter");
  await page.waitForSelector("#toast >> text=2 files changed");
  ensure(read("app.js").includes("let total = 1"), "it is applied");
  await press("t");
  await page.waitForSelector("a.title");
  await press("/");
  await page.keyboard.type("another");
  await press("Enter");
  await page.waitForURL("**/ui/tasks?q=another");
  equal(await page.locator("a.title").allTextContents(), ["another task"], "found tasks");
  expectNoProblems(page);
}
