#!/usr/bin/env node
// Starts the native program, which is in the package of this platform.
"use strict";
const { spawn } = require("node:child_process");
const { optionalDependencies } = require("../package.json");

const fail = (message) => {
  console.error(`mcp-delegator: ${message}`);
  process.exit(1);
};
const name = `@mcp-delegator/${process.platform}-${process.arch}`;
const isMusl = () => !process.report.getReport().header.glibcVersionRuntime;
if (!(name in optionalDependencies)) {
  const known = Object.keys(optionalDependencies).map((each) => each.split("/")[1]).join(", ");
  fail(`there is no package for ${process.platform} on ${process.arch}, only for ${known}.`);
}
let program;
try {
  program = require.resolve(`${name}/bin/mcp-delegator`);
} catch {
  if (isMusl()) fail("this system has no glibc, which the program needs.");
  fail(`the package ${name} is missing. npm leaves it out with --omit=optional or --no-optional: install again without them.`);
}
const args = process.argv.slice(2);
if (process.execve) {
  // The native program takes the place of Node. An error is returned only by old kernels and broken files.
  process.execve(program, [program, ...args], process.env);
}
const child = spawn(program, args, { stdio: "inherit" });
child.on("error", (error) => fail(`could not start ${program}: ${error.message}`));
for (const signal of ["SIGINT", "SIGQUIT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2"]) {
  process.on(signal, () => {
    // The keys of a terminal reach the child, too: it must not count one key twice.
    const isKey = process.stdin.isTTY && (signal === "SIGINT" || signal === "SIGQUIT");
    if (!isKey) child.kill(signal);
  });
}
child.on("exit", (code, signal) => {
  if (!signal) process.exit(code);
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});
