// How a step reads what a tool said.

import assert from "node:assert/strict";

/** A success: its text is the JSON of its structured content. */
export async function answer(callTool, name, args) {
  const result = await callTool(name, args);
  assert.ok(!result.isError, `${name} was refused: ${JSON.stringify(result.content)}`);
  assert.equal(result.content.length, 1, `${name}: one text`);
  assert.deepEqual(JSON.parse(result.content[0].text), result.structuredContent, `${name}: text and structured content differ`);
  return result.structuredContent;
}

/** A refusal: its one text. */
export async function refused(callTool, name, args) {
  const result = await callTool(name, args);
  assert.equal(result.isError, true, `${name} was not refused: ${JSON.stringify(result)}`);
  return result.content[0].text;
}

/** A setting that `cargo xtask test` hands in. */
export function required(name) {
  assert.ok(process.env[name], `set ${name}; \`cargo xtask test --only clients\` does`);
  return process.env[name];
}
