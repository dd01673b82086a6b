import { ended, ensure, equal, expectNoProblems, read, repository, run, serve, window } from "./driver.mjs";

export default async function () {
  repository();
  const first = ended("improve the counter");
  const server = await serve();
  const page = await window(server.link);
  await page.click("a.title");
  await page.click("text=Review the changes");
  await page.waitForURL(`**/ui/tasks/${first}/diff`);

  // Words that changed are marked, and a viewed file is folded.
  equal(await page.locator(".del b, .add b").allTextContents(), ["0", "1"], "changed words");
  const added = page.locator('#diff .file[data-path="added.js"]');
  await added.locator("[data-viewed]").check();
  equal(await added.locator("details").getAttribute("open"), null, "a viewed file is folded");
  await page.click(".files a:text-is('added.js')");
  await added.locator("details[open]").waitFor();

  // A comment is kept when the page is loaded again.
  await page.click('#diff .file[data-path="app.js"] .l.add .n:nth-child(2)');
  await page.fill(".comment textarea", "Name it total.");
  await page.fill("#review textarea", "Nearly.");
  await page.reload();
  equal(await page.inputValue(".comment textarea"), "Name it total.", "the draft of the comment");
  // Also side by side, where it stands below the row, and once.
  await page.click("text=Side by side");
  await page.waitForURL("**/diff?view=split");
  await page.waitForSelector("#connection >> text=Live");
  equal(await page.locator(".comment").count(), 1, "boxes of the comment");
  await page.goBack();
  equal(await page.inputValue("#review textarea"), "Nearly.", "the draft of the review");
  ensure(await added.locator("[data-viewed]").isChecked(), "the file is still viewed");

  await page.click("text=Request changes");
  await page.waitForURL((url) => url.pathname.startsWith("/ui/tasks/") && !url.pathname.includes(first));
  const second = page.url().split("/").at(-1);
  run("wait", second);
  equal(run("show", second).ask, "Nearly.\n\napp.js:22\n>   let count = 1;\nName it total.", "the message");
  equal(await page.evaluate(() => localStorage.length), 1, "drafts are gone, the viewed mark stays");

  // The next diff shows what changed since the review, and all of it.
  await page.goto(`${server.url}/ui/tasks/${second}/diff`);
  await page.click("text=Only since the review");
  await page.waitForSelector("text=All changes");
  equal(await page.locator(".l.add code").allTextContents(), ["function totaler() {", "  let total = 1;", "  return total;"], "since the review");
  await page.locator(".l.add .n:nth-child(2)").first().click();
  await page.fill(".comment textarea", "Why total?");
  await page.click("text=All changes");
  await page.waitForSelector("#review a >> text=1 more comment in Only since the review");
  await page.waitForSelector('#diff .file[data-path="added.js"]');

  // What applying does is shown first.
  await page.goto(`${server.url}/ui/tasks/${second}`);
  await page.click("text=Apply …");
  await page.waitForSelector("dialog[open] >> text=app.js");
  ensure(read("app.js").includes("let count = 0"), "nothing is applied before it is confirmed");
  await page.click("dialog button:text-is('Apply')");
  await page.waitForSelector("#toast >> text=2 files changed");
  ensure(read("app.js").includes("let total = 1") && read("added.js") !== "", "it is applied");
  expectNoProblems(page);
}
