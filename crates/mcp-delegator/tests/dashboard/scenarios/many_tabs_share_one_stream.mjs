import { ensure, equal, exec, expectNoProblems, projectFile, repository, run, serve, until, watch, window, write } from "./driver.mjs";

const TABS = 12;

export default async function () {
  repository();
  const server = await serve();
  const first = await window(server.link);
  let streams = 0;
  const count = (page) => page.on("request", (request) => (streams += Number(request.url().endsWith("/api/v1/stream"))));
  const pages = [first];
  await first.waitForSelector("#connection >> text=Live");
  while (pages.length < TABS) {
    const page = await first.context().newPage();
    watch(page);
    count(page);
    await page.goto(server.url);
    pages.push(page);
  }
  equal(streams, 0, "streams of the other tabs");
  const id = exec("wait for go", "--isolation", "none");
  await Promise.all(pages.map((page) => page.waitForSelector(`#t-${id} >> text=step`)));

  // Another tab continues when the one that reads the stream is closed.
  await first.close();
  const rest = pages.slice(1);
  await until("another tab reads the stream", () => streams === 1);
  write("go", "");
  run("wait", id);
  await Promise.all(rest.map((page) => page.waitForSelector(`#t-${id}[data-state=completed]`)));
  equal(streams, 1, "streams");

  // A tab that is suspended says nothing. A visible one takes over, and the suspended one follows it when it wakes up.
  const tab = await rest[0].context().newPage();
  watch(tab);
  count(tab);
  await tab.goto(server.url);
  await tab.waitForSelector("#connection >> text=Live");
  for (const page of rest) await page.evaluate(() => (BroadcastChannel.prototype.postMessage = () => {}));
  // A minute later, as far as the visible tab knows.
  await tab.evaluate(() => {
    const now = Date.now;
    Date.now = () => now() + 60_000;
  });
  await until("the visible tab reads the stream", () => streams === 2);
  const next = exec("another task", "--isolation", "none");
  await Promise.all([...rest, tab].map((page) => page.waitForSelector(`#t-${next}`)));
  equal(streams, 2, "streams");
  [...rest, tab].forEach(expectNoProblems);
  ensure(projectFile("go"), "the agent has ended");
}
