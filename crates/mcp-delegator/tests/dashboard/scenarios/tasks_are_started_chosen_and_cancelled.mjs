import { equal, expectNoProblems, projectFile, repository, run, serve, until, window } from "./driver.mjs";

export default async function () {
  repository();
  const server = await serve();
  const page = await window(server.link);
  await page.click("text=New task");
  await page.fill("textarea[name=task]", "wait for go");
  // A draft outlives the page.
  await page.reload();
  equal(await page.inputValue("textarea[name=task]"), "wait for go", "the draft");
  await page.fill("input[name=working_dir]", "relative");
  await page.click("button:text-is('Start')");
  await page.waitForSelector("#toast.failed >> text=must be an absolute path");
  equal(await page.inputValue("textarea[name=task]"), "wait for go", "nothing is lost");
  await page.fill("input[name=working_dir]", projectFile(""));
  await page.fill("input[name=verify]", "true");
  await page.fill("input[name=attempts]", "2");
  await page.fill("textarea[name=on_success]", "then this");
  await page.click("button:text-is('Start')");
  await page.waitForURL("**/ui/groups/G-*");
  const group = page.url().split("/").at(-1);
  await page.waitForSelector("li.task[data-state=working]");

  // The attempts, and what follows them, are cancelled together.
  await page.goto(server.url);
  await page.waitForSelector("li.task[data-state=working] >> nth=1");
  for (const box of await page.locator("li.task[data-state=working] input.choose").all()) await box.check();
  await page.waitForSelector("text=2 chosen");
  await page.click("[data-each=cancel]");
  equal(await page.locator("dialog li").allTextContents(), ["wait for go", "wait for go"], "what would be cancelled");
  await page.click("dialog button:text-is('Cancel 2 tasks')");
  await page.waitForSelector("#toast >> text=2 of 2 done");
  await until("the attempts have ended", () => run("status").tasks.length === 0);
  await page.waitForSelector("li.task[data-state=working]", { state: "detached" });
  equal(run("show", run("results", group).attempts[0].task_id).result.report?.labels, undefined);

  // Filters are in the address.
  await page.fill("input[name=q]", "then");
  await page.press("input[name=q]", "Enter");
  await page.waitForURL("**/ui/tasks?q=then");
  equal([...new Set(await page.locator("a.title").allTextContents())], ["then this"], "found tasks");
  page.problems = page.problems.filter((problem) => !problem.includes("status of 400"));
  expectNoProblems(page);
}
