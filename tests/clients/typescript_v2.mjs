// The TypeScript SDK of version 2, in each way that it can agree on a protocol revision.

import assert from "node:assert/strict";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { journey, token, url } from "./journey.mjs";

const NEGOTIATIONS = [
  { mode: "legacy", agreed: "2025-11-25" },
  { mode: "auto", agreed: "2026-07-28" },
  { mode: { pin: "2026-07-28" }, agreed: "2026-07-28" },
];

for (const { mode, agreed } of NEGOTIATIONS) {
  const client = new Client(
    { name: "callboard-test-typescript-v2", version: "1.0.0" },
    { versionNegotiation: { mode } },
  );
  const requestInit = { headers: { Authorization: `Bearer ${token}` } };
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit }));
  try {
    assert.equal(client.getNegotiatedProtocolVersion(), agreed, `mode ${JSON.stringify(mode)}`);
    await journey(
      `TypeScript SDK v2, ${JSON.stringify(mode)}`,
      async () => (await client.listTools()).tools,
      (name, args) => client.callTool({ name, arguments: args }),
    );
  } finally {
    await client.close();
  }
}
