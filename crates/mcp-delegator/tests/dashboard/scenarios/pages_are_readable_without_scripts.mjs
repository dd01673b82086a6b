import { ended, equal, repository, run, serve, window } from "./driver.mjs";

export default async function () {
  repository();
  const id = ended("improve the counter", "--verify", "true");
  const large = ended("large");
  const server = await serve();
  const page = await window(server.link, { javaScriptEnabled: false });
  await page.click("a.title >> text=improve the counter");
  await page.waitForSelector("text=verified");
  await page.click(".tabs >> text=Changes");
  equal(await page.locator(".l.add code").allTextContents(), ["export const added = true;", "  let count = 1;"], "the changes");
  await page.click(".tabs >> text=Log");
  await page.waitForSelector("li.entry");
  await page.fill("input[name=q]", "app.js");
  await page.press("input[name=q]", "Enter");
  await page.waitForURL("**/log?q=app.js");
  equal(run("show", id).state, "completed");
  // A large file has a page of its own.
  await page.goto(`${server.url}/ui/tasks/${large}/diff`);
  equal(await page.locator(".l").count(), 0, "large files are folded");
  await page.click("summary >> text=large1.txt");
  await page.click("text=Show 5000 changed lines of large1.txt");
  await page.waitForURL("**/diff?file=large1.txt", { waitUntil: "load" });
  equal(await page.locator(".l.add").count(), 5000, "lines of the file");
}
