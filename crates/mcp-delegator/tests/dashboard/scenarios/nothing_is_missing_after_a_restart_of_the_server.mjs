import { ended, ensure, equal, repository, serve, stop, window } from "./driver.mjs";

export default async function () {
  repository();
  ended("before");
  const first = await serve();
  const page = await window(first.link);
  await page.waitForSelector("#connection >> text=Live");
  await page.evaluate(() => (window.isSamePage = true));
  await stop(first);
  await page.waitForSelector("#connection >> text=Not connected");
  ended("meanwhile");
  const second = await serve(first.port);
  ended("afterwards");
  await page.waitForSelector("#connection >> text=Live");
  await page.waitForSelector("a.title >> text=afterwards");
  equal(await page.locator("a.title").allTextContents(), ["afterwards", "meanwhile", "before"], "tasks");
  ensure(await page.evaluate(() => window.isSamePage), "the page was not loaded again");
  // The session outlives the server.
  await page.reload();
  await page.waitForSelector("a.title >> text=before");

  // Without the server, the app says so instead of the browser.
  await page.waitForFunction(() => navigator.serviceWorker.controller !== null);
  await stop(second);
  await page.goto(first.url).catch(() => {});
  await page.waitForSelector("h1 >> text=Not connected");
}
