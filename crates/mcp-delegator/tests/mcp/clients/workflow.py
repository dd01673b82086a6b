"""The whole workflow with the Python SDK: workflow.py PROGRAM MODE, where MODE is legacy or a version of the protocol."""

import asyncio
import json
import os
import sys

from mcp import StdioServerParameters
from mcp.client import Client


async def main(program: str, mode: str) -> None:
    server = StdioServerParameters(command=program, args=["serve"], env=dict(os.environ), cwd=os.getcwd())
    notifications = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        notifications.append(done)

    async with Client(server, mode=mode) as client:
        tools = (await client.list_tools()).tools
        accepted = await client.call_tool("_codex_local_exec", {"task": "mend it", "format": "json"})
        task = {"task_id": accepted.structured_content["data"]["task_id"]}
        waited = await client.call_tool("_codex_local_wait", task, progress_callback=progress)
        results = await client.call_tool("_codex_local_results", {**task, "format": "json"})
        refused = await client.call_tool("_codex_local_status", {"limit": -1})
        resources = (await client.list_resources()).resources
        prompts = (await client.list_prompts()).prompts
        print(json.dumps({
            "version": client.protocol_version,
            "tools": len(tools),
            "waited": waited.content[0].text,
            "final_message": results.structured_content["data"]["final_message"],
            "refused": refused.is_error,
            "progress": len(notifications),
            "resources": len(resources),
            "prompts": len(prompts),
        }))


asyncio.run(main(*sys.argv[1:]))
