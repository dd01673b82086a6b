import { ended, equal, expectNoProblems, link, repository, run, serve, window } from "./driver.mjs";

export default async function () {
  repository();
  const id = ended("improve the counter");
  const server = await serve();
  const page = await window(link("--scope", "read"));
  await page.waitForSelector("a.title");
  await page.goto(`${server.url}/ui/tasks/${id}`);
  await page.waitForSelector("text=Claimed and observed");
  equal(await page.locator("main form[data-action], [data-check], input.choose").count(), 0, "actions of a session that reads");
  const act = (headers) => page.evaluate(async ([id, headers]) => {
    const { data } = await (await fetch("/api/v1/session")).json();
    const token = headers ? { "X-CSRF-Token": data.csrf_token } : {};
    return (await fetch(`/api/v1/tasks/${id}/retry`, { method: "POST", headers: token })).status;
  }, [id, headers]);
  equal([await act(true), await act(false)], [403, 403], "its actions are refused");
  equal((await page.goto(`${server.url}/ui/tasks/new`)).status(), 400, "the form for tasks");

  // A session that is revoked ends at once, in every tab.
  await page.goto(server.url);
  await page.waitForSelector("#connection >> text=Live");
  const { sessions } = run("dashboard", "sessions");
  equal(sessions.map(({ scope }) => scope), ["read"], "sessions");
  page.problems = page.problems.filter((problem) => !/status of 40\d/.test(problem));
  expectNoProblems(page);
  run("dashboard", "sessions", "--revoke", sessions[0].session_id);
  await page.waitForSelector("#connection >> text=Signed out");
  // Signed in again in another tab, this one goes on: also its actions, which have a token of the earlier session.
  const tab = await page.context().newPage();
  await tab.goto(link());
  await page.waitForSelector("#connection >> text=Live");
  await page.reload();
  await page.evaluate(() => fetch("/api/v1/session"));
  await page.check("input.choose");
  run("dashboard", "sessions", "--revoke-all");
  await tab.goto(link());
  await page.click("[data-each=read]");
  await page.waitForSelector("#toast >> text=1 of 1 done");

  // Signed out, no tab shows a task, and the browser remembers no text of one.
  await page.goto(`${server.url}/ui/tasks/${id}/diff`);
  await page.locator("#diff .l.add .n:nth-child(2)").first().click();
  await page.fill(".comment textarea", "a secret");
  await page.click("text=Sign out");
  await page.click("dialog button:text-is('Sign this browser out')");
  for (const left of [page, tab]) await left.waitForSelector("text=This browser is not signed in");
  equal(await page.evaluate(() => Object.keys(localStorage)), [], "what the browser remembers");
  equal((await page.goto(server.url)).status(), 401, "the next page");
}
