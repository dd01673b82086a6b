#!/usr/bin/env python3
"""Behaves like mcp-delegator, as far as the race uses it: a fast participant whose results are known."""

import json
import os
import signal
import subprocess
import sys
import time

TASKS = os.environ.get("MCP_DELEGATOR_HOME", ".")


def start(prompt, directory):
    """Starts the agent in a session of its own, so that it survives the server."""
    os.makedirs(TASKS, exist_ok=True)
    task = str(len(os.listdir(TASKS)))
    with open(os.path.join(TASKS, task), "w") as output:
        agent = subprocess.Popen(["codex", "exec", "--json", prompt], cwd=directory, stdin=subprocess.DEVNULL,
                                 stdout=output, start_new_session=True)
    return task, agent


def wait(task):
    while True:
        with open(os.path.join(TASKS, task)) as output:
            text = output.read()
        if "turn.completed" in text:
            return text
        time.sleep(0.001)


def cancel(agent):
    with open(f"/proc/{agent.pid}/task/{agent.pid}/children") as children:
        for child in children.read().split():
            os.kill(int(child), signal.SIGKILL)
    agent.kill()
    agent.wait()
    return "cancelled"


def call(name, arguments, agents):
    if name == "_codex_local_status":
        return f"{len(agents)} tasks"
    if name == "_codex_local_wait":
        return wait(arguments["task_id"])
    if name == "_codex_local_cancel":
        return cancel(agents[arguments["task_id"]])
    task, agent = start(arguments["task"], arguments["working_dir"])
    agents[task] = agent
    if name == "_codex_local_exec":
        return f"# Task {task} accepted"
    agent.wait()
    return wait(task)


def serve():
    agents = {}
    for line in sys.stdin:
        request = json.loads(line)
        if "id" not in request:
            continue
        method = request["method"]
        result = {}
        if method == "tools/list":
            result = {"tools": [{"name": "_codex_local_run"}, {"name": "_codex_local_exec"}]}
        elif method == "tools/call":
            text = call(request["params"]["name"], request["params"]["arguments"], agents)
            result = {"content": [{"type": "text", "text": text}]}
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)


if sys.argv[1:] == ["--version"]:
    print("fake 1.2.3")
elif sys.argv[1:] == ["serve"]:
    serve()
else:
    print(wait(start(sys.argv[-1], ".")[0]))
