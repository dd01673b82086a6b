import { ensure, equal, exec, expectNoProblems, repository, run, serve, setHidden, watch, window, write } from "./driver.mjs";

export default async function () {
  repository();
  const id = exec("wait for go", "--isolation", "none");
  const server = await serve();
  const page = await window(server.link);
  await page.goto(`${server.url}/ui/tasks/${id}`);
  const box = page.locator("textarea[data-draft]");
  await page.waitForSelector("text=Last message");
  await page.click("summary:text-is('Task text')");
  await box.fill("half a mess");
  await page.evaluate(() => {
    document.activeElement.setSelectionRange(2, 4);
    document.body.style.minHeight = "4000px";
    window.scrollTo(0, 120);
    window.box = document.activeElement;
  });
  const step = async () => Number((await page.textContent("main")).match(/step (\d+)/)?.[1] ?? 0);
  const before = await step();
  await page.waitForFunction((before) => Number(document.querySelector("main").textContent.match(/step (\d+)/)?.[1]) > before + 2, before);
  const state = await page.evaluate(() => ({
    isFocused: document.activeElement === window.box,
    selection: [window.box.selectionStart, window.box.selectionEnd],
    text: window.box.value,
    scroll: window.scrollY,
    isOpen: [...document.querySelectorAll("details")].some((part) => part.open && part.textContent.startsWith("Task text")),
  }));
  equal(state, { isFocused: true, selection: [2, 4], text: "half a mess", scroll: 120, isOpen: true }, "after updates");

  // A list that comes to the front does not wait for the end of the long pause of a hidden one.
  const list = await page.context().newPage();
  watch(list);
  await list.goto(server.url);
  const row = list.locator(`#t-${id}`);
  await row.locator("text=step").waitFor();
  await setHidden(list, true);
  const isOfList = (message) => message.url() === `${server.url}/`;
  await list.waitForResponse(isOfList);
  const refreshed = list.waitForRequest(isOfList, { timeout: 8_000 });
  await setHidden(list, false);
  await refreshed;
  // A row keeps its choice and the focus when it goes to another section.
  await row.locator("input.choose").check();
  await row.locator("input.choose").focus();

  // The end of the task arrives by itself, and the draft stays although the form is another one.
  write("go", "");
  await page.waitForSelector("text=Continue with the agent");
  equal(await box.inputValue(), "half a mess", "the draft");
  await page.waitForSelector("text=Final message");
  await list.waitForSelector(`#t-${id}[data-state=completed]`);
  ensure(await row.locator("input.choose").isChecked(), "the row is still chosen");
  ensure(await row.locator("input.choose").evaluate((box) => box === document.activeElement), "the row still has the focus");
  // What was written as a message is sent as the next turn.
  await page.click("main form:has(textarea) button:text-is('Send')");
  await page.waitForURL((url) => url.pathname.startsWith("/ui/tasks/") && !url.pathname.includes(id));
  const next = page.url().split("/").at(-1);
  run("wait", next);
  equal(run("show", next).ask, "half a mess", "the message");
  [page, list].forEach(expectNoProblems);
}
