"""The Python package `fastmcp`, in its default way and with the legacy handshake."""

import asyncio

from fastmcp import Client
from fastmcp.client.transports import StreamableHttpTransport

from journey import TOKEN, URL, check, journey

NEGOTIATIONS = {"auto": "2026-07-28", "legacy": "2025-11-25"}


async def main():
    for mode, agreed in NEGOTIATIONS.items():
        transport = StreamableHttpTransport(URL, headers={"Authorization": f"Bearer {TOKEN}"})
        async with Client(transport, mode=mode) as client:
            check(client.protocol_version == agreed, f"{mode}: {client.protocol_version}")
            await journey(f"Python fastmcp, {mode}", client.list_tools, client.call_tool_mcp)


asyncio.run(main())
