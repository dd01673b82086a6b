import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PHONE, ensure, equal, exec, expectNoProblems, read, run, serve, violations, window, world } from "./driver.mjs";

/** An agent that speaks like Claude Code and wants to run `make all`. */
const ASKER = `#!/bin/bash
[ "$1" = --version ] && echo '2.1.325 (Claude Code)' && exit 0
read -r line
echo '{"type":"system","subtype":"init","session_id":"s1","tools":[],"model":"m"}'
echo '{"type":"control_request","request_id":"r1","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"make all"}}}'
read -r answer
printf '%s\\n' "$answer" > answer.json
echo '{"type":"result","subtype":"success","is_error":false,"result":"done","session_id":"s1","num_turns":1}'
cat > /dev/null
`;

export default async function () {
  const path = join(world.root, "bin/asker");
  mkdirSync(join(world.root, "bin"), { recursive: true });
  writeFileSync(path, ASKER);
  chmodSync(path, 0o755);
  const config = `[agents.asker]\nprotocol = "claude-stream"\ncommand = ["/bin/bash", "${path}"]\nunsandboxed = true\n`;
  writeFileSync(join(world.variables.HOME, ".config/mcp-delegator/config.toml"), config);

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
  expectNoProblems(page);
  await server.child.kill();
}
