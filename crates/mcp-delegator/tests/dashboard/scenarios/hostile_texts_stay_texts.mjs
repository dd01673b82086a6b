import { ended, ensure, equal, exec, expectNoProblems, repository, run, serve, window } from "./driver.mjs";

const TEXTS = [
  "<script>hacked()</script>", "<img src=x onerror=hacked()>", "\"><svg onload=hacked()>", "'><iframe srcdoc='<script>hacked()</script>'>",
  "</title><script>hacked()</script>", "javascript:hacked()", "{{hacked()}}", "&lt;b&gt;", "</textarea><script>hacked()</script>",
];

export default async function () {
  repository();
  const title = TEXTS.join(" ");
  const id = ended(`${title} hostile files`, "--labels", `x=${TEXTS[1]}`, "--verify", "printf '<script>hacked()</script>'; exit 1");
  exec(`${title} in place`, "--isolation", "none");
  const server = await serve();
  const page = await window(server.link);
  await page.context().addInitScript(() => (window.hacked = () => (window.isHacked = true)));
  const query = encodeURIComponent(title);
  const paths = [
    "/", `/ui/tasks?q=${query}`, `/ui/tasks?repo=${query}`, `/ui/tasks?agent=${query}`, `/ui/tasks?label=${query}`, `/ui/tasks?section=${query}`,
    `/ui/tasks?${query}`, `/ui/tasks/${query}`, `/ui/tasks/${id}`, `/ui/tasks/${id}/log`, `/ui/tasks/${id}/log?q=${query}`,
    `/ui/tasks/${id}/diff`, `/ui/tasks/${id}/diff?view=split`, `/ui/tasks/${id}/diff?file=${query}`, `/ui/tasks/${id}/diff?against=${query}`,
    `/ui/tasks/${id}/check/apply`, `/ui/tasks/${id}/check/${query}`, `/ui/groups/${query}`, `/ui/history?query=${query}`, `/ui/history?agent=${query}`,
    `/ui/usage?since=${query}`, `/ui/fleet?worker=${query}`, `/ui/tasks/new?dir=${query}`, `/?to=${query}`, `/ui/${query}`,
    `/ui/tasks?page=${query}`, `/ui/tasks?cursor=${query}`, `/ui/tasks?limit=${query}`, `/ui/tasks/${id}/log?from=${query}`, `/ui/tasks/${id}/log?failed=${query}`,
    `/ui/tasks/${id}/diff?path=${query}`, `/ui/tasks/${id}/diff?attempt=${query}`, `/ui/tasks/${id}/diff?view=${query}`, `/ui/tasks/${query}/diff`,
    `/ui/tasks/${query}/log`, `/ui/groups/${query}/diffs`, `/ui/groups/${query}/check/adopt?attempt=${query}`, `/ui/history?repo=${query}`,
    `/ui/history?since=${query}`, `/ui/history?cursor=${query}`, `/ui/usage?by=${query}`, `/?code=${query}&to=${query}`,
  ];
  for (const path of paths) {
    await page.goto(server.url + path);
    await page.waitForSelector("main");
    ensure(!(await page.evaluate(() => window.isHacked)), `${path} runs a script`);
    const foreign = await page.evaluate(() =>
      [...document.querySelectorAll("script, iframe, img, svg[onload], [onerror]")].filter((found) => !found.matches("script[src='/ui/assets/dashboard.js']")).length);
    equal(foreign, 0, `elements of a text on ${path}`);
  }
  // What is hidden in a changed line is shown, and the name of a file is a name.
  await page.goto(`${server.url}/ui/tasks/${id}/diff`);
  equal(await page.locator(".hidden-character").allTextContents(), ["U+202E"], "hidden characters");
  equal(await page.locator("#diff .file h2").allTextContents(), ["<img src=x onerror=hacked()>.js"], "file names");
  // A comment on such a line and such a draft are texts, too.
  await page.click(".l.add .n:nth-child(2)");
  await page.fill(".comment textarea", TEXTS[0]);
  await page.reload();
  await page.waitForSelector(".comment");
  ensure(!(await page.evaluate(() => window.isHacked)), "a draft runs a script");
  ensure(run("show", id).title.includes("<script>"), "the title is stored as it is");
  page.problems = page.problems.filter((problem) => !/status of 4\d\d/.test(problem));
  expectNoProblems(page);
}
