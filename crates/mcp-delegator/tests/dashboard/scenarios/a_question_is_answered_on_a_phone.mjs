import { PHONE, ensure, equal, exec, expectNoProblems, installAsker, read, run, serve, violations, window } from "./driver.mjs";

export default async function () {
  installAsker();
  const server = await serve();
  const pairing = run("dashboard", "--pair");
  equal(pairing.scope, "answer", "what a paired device may do");
  const page = await window(pairing.link, { viewport: PHONE, hasTouch: true, isMobile: true });
  await page.waitForSelector("#connection >> text=Live");
  const id = exec("ask me", "--agent", "asker", "--ask", "--skip-git-repo-check");
  // The question appears by itself, also in the title.
  await page.waitForSelector(".question >> text=make all");
  equal(await page.title(), "1 waiting · Tasks · mcp-delegator");
  equal(await violations(page), [], "accessibility");
  equal(await page.locator("text=New task").count(), 0, "a paired device starts no task");
  const buttons = page.locator(".question .options button");
  for (const box of await Promise.all((await buttons.all()).map((button) => button.boundingBox()))) {
    ensure(box.height >= 44 && box.x >= 0 && box.x + box.width <= PHONE.width, "a finger can press the button");
  }
  await buttons.first().tap();
  await page.waitForSelector(".question", { state: "detached" });
  run("wait", id);
  ensure(read("answer.json").includes('"allow"'), "the agent got the answer");
  await page.waitForSelector("li.task >> text=completed");

  // An option is the whole answer, also if the draft of another one stands below it.
  const other = exec("ask about a colour", "--agent", "asker", "--ask", "--skip-git-repo-check");
  await page.waitForSelector(".question >> text=Which colour?");
  await page.fill(".question textarea", "Green");
  await page.tap(".question .options button:has-text('Blue')");
  await page.waitForSelector(".question", { state: "detached" });
  run("wait", other);
  equal([read("answer.json").includes("Blue"), read("answer.json").includes("Green")], [true, false], "the answer");
  expectNoProblems(page);
  await server.child.kill();
}
