// The TypeScript SDK of version 1, which opens with `initialize`.

import assert from "node:assert/strict";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { journey, token, url } from "./journey.mjs";

const client = new Client({ name: "callboard-test-typescript-v1", version: "1.0.0" });
const requestInit = { headers: { Authorization: `Bearer ${token}` } };
await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit }));
try {
  assert.ok(client.getServerCapabilities()?.tools, "the hub announces no tools");
  assert.ok(client.getInstructions()?.includes("get_graph_run"), "the instructions do not say how to read a result");
  await journey(
    "TypeScript SDK v1",
    async () => (await client.listTools()).tools,
    (name, args) => client.callTool({ name, arguments: args }),
  );
} finally {
  await client.close();
}
