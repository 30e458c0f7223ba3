// The Inspector's command line: a process a call, so nothing is remembered between calls.

import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { journey, token, url } from "./journey.mjs";

const program = join(dirname(fileURLToPath(import.meta.url)), "node_modules/.bin/mcp-inspector");
const CALL_LIMIT_MS = 60_000;
// Its own home, so that the person's saved servers and sign-ins are neither read nor written.
const home = mkdtempSync(join(tmpdir(), "callboard-inspector-"));

function inspect(era, ...options) {
  const connection = [url, "--transport", "http", "--protocol-era", era, "--header", `Authorization: Bearer ${token}`];
  const { status, stdout, stderr, error } = spawnSync(
    process.execPath,
    [program, "--cli", ...connection, "--format", "json", "--quiet", ...options],
    { encoding: "utf8", timeout: CALL_LIMIT_MS, env: { ...process.env, HOME: home } },
  );
  if (error) throw error;
  try {
    return { status, result: JSON.parse(stdout).result, stderr };
  } catch {
    throw new Error(`${options.join(" ")} ended with ${status}: ${stdout}${stderr}`);
  }
}

try {
  for (const era of ["legacy", "modern"]) {
    await journey(
      `Inspector, ${era}`,
      async () => {
        // `--strict` fails on a schema that some host would not take.
        const { status, result, stderr } = inspect(era, "--method", "tools/list", "--strict");
        if (status !== 0) throw new Error(`tools/list ended with ${status}: ${stderr}`);
        return result.tools;
      },
      async (name, args) =>
        inspect(era, "--method", "tools/call", "--tool-name", name, "--tool-args-json", JSON.stringify(args)).result,
    );
  }
} finally {
  rmSync(home, { recursive: true, force: true });
}
