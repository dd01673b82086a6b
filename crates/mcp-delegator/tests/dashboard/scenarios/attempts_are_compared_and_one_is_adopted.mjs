import { ensure, equal, expectNoProblems, read, repository, run, serve, window } from "./driver.mjs";

export default async function () {
  repository();
  const { group_id: id } = run("exec", "count from one", "--mode", "workspace-write", "--attempts", "3", "--verify", "true");
  run("wait", id);
  const server = await serve();
  const page = await window(server.link);
  await page.click("text=Compare 3 attempts");
  await page.waitForSelector(".recommendation >> text=Attempt 1 is recommended");
  equal(await page.locator(".attempt").count(), 3, "attempts");
  equal(await page.locator(".attempt >> text=completed, verified").count(), 3, "verified attempts");
  equal(await page.locator(".attempt.recommended h2").allTextContents(), ["Attempt 1"], "the recommended one");

  await page.click("text=Compare the changes");
  await page.waitForSelector("text=One against another");
  equal(await page.locator(".file .attempt .l.add").count(), 3, "one changed line of each");
  await page.click("text=2 against 1");
  await page.waitForSelector("text=Compared with the result of");
  equal(await page.locator(".l.add, .l.del").count(), 2, "the lines in which they differ");

  await page.goto(`${server.url}/ui/groups/${id}`);
  await page.locator(".attempt", { hasText: "Attempt 2" }).locator("text=Adopt").click();
  await page.waitForSelector("dialog[open] >> text=The worktrees of the other attempts are discarded");
  await page.check("dialog input[name=force]");
  await page.click("dialog button:text-is('Adopt')");
  await page.waitForSelector("#toast >> text=1 file changed");
  ensure(!read("app.js").includes("let count = 0"), "it is applied");
  equal(run("worktrees").worktrees, [], "the others are discarded");
  expectNoProblems(page);
}
