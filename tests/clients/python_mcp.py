"""The Python package `mcp`, in each way that it can agree on a protocol revision."""

import asyncio

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from journey import TOKEN, URL, check, journey

PINNED = "2026-07-28"
NEGOTIATIONS = {"auto": "2026-07-28", "legacy": "2025-11-25", PINNED: PINNED}
# Longer than the longest held call.
TIMEOUT_SECONDS = 60


async def main():
    for mode, agreed in NEGOTIATIONS.items():
        headers = {"Authorization": f"Bearer {TOKEN}"}
        async with httpx2.AsyncClient(headers=headers, timeout=TIMEOUT_SECONDS) as http:
            async with Client(streamable_http_client(URL, http_client=http), mode=mode) as client:
                check(client.protocol_version == agreed, f"{mode}: {client.protocol_version}")
                # A pinned client asks for no introduction, so it hears no instructions.
                told = mode == PINNED or "get_graph_run" in (client.instructions or "")
                check(told, "the instructions do not say how to read a result")

                async def list_tools(client=client):
                    return (await client.list_tools()).tools

                await journey(f"Python mcp, {mode}", list_tools, client.call_tool)


asyncio.run(main())
