"""Edits a picture through `cutroom mcp`, with the official MCP client for Python: agent.py CUTROOM FOLDER PICTURE."""

import asyncio
import os
import pathlib
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


async def main(program, folder, picture):
    settings = {name: value for name, value in os.environ.items() if name.startswith("CUTROOM_")}
    parameters = StdioServerParameters(command=program, args=["mcp", "--folder", folder], env=settings)
    async with stdio_client(parameters) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        tools = {tool.name for tool in (await session.list_tools()).tools}
        assert {"edit", "get_job", "fetch", "chat"} <= tools, tools
        reported = []

        async def progress(done, total, message):
            reported.append((done, total, message))

        edited = await session.call_tool("edit", {"input": picture, "prompt": "winter"}, progress_callback=progress)
        job = edited.structured_content["job"]
        done = await session.call_tool("get_job", {"job_id": job["job_id"]}, progress_callback=progress)
        assert done.structured_content["job"]["status"] == "completed", done
        assert reported, "no progress was reported"
        saved = await session.call_tool("fetch", {"job_id": job["job_id"], "path": "edited.png", "show": True})
        assert pathlib.Path(saved.structured_content["path"]).read_bytes().startswith(b"\x89PNG"), saved
        assert saved.content[1].mime_type == "image/png", saved
        rejected = await session.call_tool("edit", {"input": "/etc/passwd", "prompt": "winter"})
        assert rejected.is_error and "outside" in rejected.content[0].text, rejected
    print("agent: ok")


asyncio.run(main(*sys.argv[1:]))
