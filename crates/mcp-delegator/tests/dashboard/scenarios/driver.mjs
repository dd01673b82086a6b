// What scenarios use: the program, the browser, and conditions to wait for. The world is in the variable WORLD.
import { spawn, spawnSync } from "node:child_process";
import { chmodSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const world = JSON.parse(process.env.WORLD);
const require = createRequire(join(world.tools, "package.json"));
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

/** Longer than anything takes on a busy machine. */
export const PATIENCE = 20_000;
export const DESKTOP = { width: 1200, height: 800 };
export const PHONE = { width: 360, height: 740 };

const children = [];
let browser;

/** The program with these arguments: its data. */
export function run(...args) {
  const ended = spawnSync(world.program, [...args, "--json"], { cwd: world.project, env: world.variables, encoding: "utf8" });
  let envelope;
  try {
    envelope = JSON.parse(ended.stdout);
  } catch {
    throw new Error(`${args.join(" ")}: ${ended.stdout} ${ended.stderr}`);
  }
  if (!envelope.ok && envelope.data === null) throw new Error(`${args.join(" ")}: ${envelope.error.message}`);
  return envelope.data;
}

/** The id of a new task. */
export const exec = (text, ...args) => run("exec", text, "--mode", "workspace-write", ...args).task_id;

/** A task that has ended, in a worktree of its own. */
export function ended(text, ...args) {
  const id = exec(text, "--isolation", "worktree", ...args);
  run("wait", id);
  return id;
}

export const projectFile = (name) => join(world.project, name);
export const write = (name, text) => writeFileSync(projectFile(name), text);
export const read = (name) => readFileSync(projectFile(name), "utf8");
export { existsSync, world };

export function git(...args) {
  const ended = spawnSync("/usr/bin/git", args, { cwd: world.project, env: world.variables, encoding: "utf8" });
  if (ended.status !== 0) throw new Error(`git ${args.join(" ")}: ${ended.stderr}`);
  return ended.stdout;
}

/** A repository with a file in which the agent changes something. */
export function repository() {
  const lines = Array.from({ length: 20 }, (_, at) => `// line ${at + 1}`);
  write("app.js", [...lines, "function counter() {", "  let count = 0;", "  return count;", "}", ""].join("\n"));
  git("init", "--quiet");
  git("add", ".");
  git("commit", "--quiet", "--message", "one");
}

const COLOURS = JSON.stringify({
  question: "Which colour?",
  header: "Colour",
  options: [{ label: "Blue", description: "calm" }, { label: "Red", description: "loud" }],
  multiSelect: false,
});

/** An agent that speaks like Claude Code. It asks which colour to use if its task is about colours; otherwise it wants to run `make all`. */
const ASKER = `#!/bin/bash
[ "$1" = --version ] && echo '2.1.325 (Claude Code)' && exit 0
read -r line
echo '{"type":"system","subtype":"init","session_id":"s1","tools":[],"model":"m"}'
case "$line" in
  *colour*) tool='"AskUserQuestion","input":{"questions":[${COLOURS}]}' ;;
  *) tool='"Bash","input":{"command":"make all"}' ;;
esac
printf '%s\\n' '{"type":"control_request","request_id":"r1","request":{"subtype":"can_use_tool","tool_name":'"$tool"'}}'
read -r answer
printf '%s\\n' "$answer" > answer.json
echo '{"type":"result","subtype":"success","is_error":false,"result":"done","session_id":"s1","num_turns":1}'
cat > /dev/null
`;

/** Configures the agent `asker`. */
export function installAsker() {
  const path = join(world.root, "bin/asker");
  writeFileSync(path, ASKER);
  chmodSync(path, 0o755);
  const agent = `[agents.asker]\nprotocol = "claude-stream"\ncommand = ["/bin/bash", "${path}"]\nunsandboxed = true\n`;
  const config = join(world.variables.HOME, ".config/mcp-delegator/config.toml");
  writeFileSync(config, `verify_unsandboxed = true\n${agent}`);
}

/** A running server. */
export async function serve(port = "0") {
  const args = ["dashboard", "--no-open", "--port", port];
  const child = spawn(world.program, args, { cwd: world.project, env: world.variables, stdio: ["ignore", "ignore", "pipe"] });
  children.push(child);
  let text = "";
  child.stderr.setEncoding("utf8");
  for await (const part of child.stderr) {
    text += part;
    const found = text.match(/dashboard is on (http:\/\/127[.\d]+:(\d+))[\s\S]*?(http:\S+code=\S+)/);
    if (found) return { url: found[1], port: found[2], link: found[3], child };
  }
  throw new Error(`the server did not start: ${text}`);
}

export async function stop(server) {
  const gone = new Promise((resolve) => server.child.once("exit", resolve));
  server.child.kill("SIGTERM");
  await gone;
}

export const link = (...args) => run("dashboard", "--no-open", ...args).link;

/** Makes a page believe that it is hidden or shown: a browser without a screen hides none. */
export const setHidden = (page, isHidden) =>
  page.evaluate((value) => {
    Object.defineProperty(document, "hidden", { value, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
  }, isHidden);

/** A signed-in browser window; each has cookies of its own. */
export async function window(target, options = {}) {
  const context = await browser.newContext({ viewport: DESKTOP, ...options });
  context.setDefaultTimeout(PATIENCE);
  const page = await context.newPage();
  watch(page);
  await page.goto(target);
  return page;
}

/** Whatever a page reports as an error fails the scenario. */
export function watch(page) {
  page.problems = [];
  page.on("pageerror", (error) => page.problems.push(`error: ${error.message}`));
  page.on("console", (message) => message.type() === "error" && page.problems.push(`console: ${message.text()} ${message.location().url}`));
  page.on("dialog", (dialog) => (page.problems.push(`dialog: ${dialog.message()}`), dialog.dismiss()));
}

export function expectNoProblems(page) {
  equal(page.problems, [], "problems of the page");
}

export function equal(actual, expected, what = "") {
  const [one, other] = [JSON.stringify(actual), JSON.stringify(expected)];
  if (one !== other) throw new Error(`${what}: ${one} is not ${other}`);
}

export function ensure(condition, what) {
  if (!condition) throw new Error(`not so: ${what}`);
}

/** Waits until the condition holds. */
export async function until(what, condition) {
  const begin = Date.now();
  while (!(await condition())) {
    if (Date.now() - begin > PATIENCE) throw new Error(`in vain: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** The violations that axe finds. */
export async function violations(page) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => window.axe.run());
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(" | ")}`);
}

/** Runs a scenario, and ends whatever it has started. */
export async function play(scenario) {
  // Its sandbox needs rights that neither root nor a user in a container has. It opens only our own pages.
  const sandbox = ["--no-sandbox"];
  const quiet = ["--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run"];
  try {
    browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: [...sandbox, ...quiet, "--disable-dev-shm-usage"] });
    await scenario();
  } finally {
    await browser?.close();
    children.forEach((child) => child.kill("SIGKILL"));
    spawnSync(world.program, ["cancel", "--all", "--json"], { cwd: world.project, env: world.variables });
  }
}
