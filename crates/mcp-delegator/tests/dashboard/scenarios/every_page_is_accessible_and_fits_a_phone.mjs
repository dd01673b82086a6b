import { PHONE, ended, exec, expectNoProblems, equal, git, repository, run, serve, until, violations, window, write } from "./driver.mjs";

export default async function () {
  repository();
  const task = ended("improve the counter", "--verify", "true", "--labels", "team=red");
  ended("failing tests", "--verify", "false");
  const { group_id: group } = run("exec", "count from one", "--mode", "workspace-write", "--attempts", "2");
  run("wait", group);
  const running = exec("wait for go", "--isolation", "worktree");
  const pages = [
    "/", "/ui/tasks?q=counter", "/ui/tasks/new", `/ui/tasks/${task}`, `/ui/tasks/${task}/diff`, `/ui/tasks/${task}/diff?view=split`,
    `/ui/tasks/${task}/log`, `/ui/tasks/${running}`, `/ui/tasks/${running}/diff`, `/ui/groups/${group}`, `/ui/groups/${group}/diffs`,
    "/ui/history", "/ui/usage", "/ui/fleet", "/ui/tasks/T-local-0000000000", `/ui/tasks/${task}/check/apply`,
  ];
  const server = await serve();
  for (const [colorScheme, viewport] of [["light", undefined], ["dark", PHONE]]) {
    const page = await window(server.link, { colorScheme, ...(viewport && { viewport }) });
    for (const path of pages) {
      await page.goto(server.url + path);
      await page.waitForSelector("main h1, main h2");
      equal(await violations(page), [], `${path} ${colorScheme}`);
      const width = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
      equal(width <= 0, true, `${path} is ${width} px too wide`);
    }
    await page.goto(`${server.url}/ui/tasks/${task}/diff?view=split`);
    const halves = await page.locator(".block.split").first().evaluate((block) => [...block.children].slice(0, 2).map((half) => half.getBoundingClientRect().top));
    equal(halves[0], halves[1], "the two sides of a row stand beside each other");
    await page.goto(server.url);
    await page.click("button[data-dialog]", { force: true }).catch(() => {});
    // The answer 404 of the unknown task is an error in the console of the browser.
    page.problems = page.problems.filter((problem) => !problem.includes("404"));
    expectNoProblems(page);
    await page.context().close();
    server.link = run("dashboard", "--no-open").link;
  }
  write("go", "");
  git("status");
  await until("nothing runs", () => run("status").tasks.length >= 0);
}
