// What a chat does with Callboard, step by step, whichever client carries the calls.
// A script hands in how its client lists and calls tools; each step throws when the hub breaks a promise.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { readdirSync } from "node:fs";
import { answer, refused, required } from "./calls.mjs";
import { tasks } from "./tasks.mjs";

/** Where the hub is and what the connection may use: set by `cargo xtask test`. */
export const url = required("CALLBOARD_URL");
export const token = required("CALLBOARD_TOKEN");
const folder = required("CALLBOARD_FOLDER");

const GRAPH_TOOLS = ["list_graph_sessions", "run_graph_session", "get_graph_run", "cancel_graph_run"];
const CHAT_TOOLS = [
  "link_current_chat",
  "read_linked_chat_tasks",
  "claim_linked_chat_task",
  "submit_linked_chat_result",
  "upload_linked_chat_artifact",
];
const NOT_FOUND = "Graph run not found or access removed";
const WAIT_SECONDS = 20;
const WAITS_MAX = 6;

/**
 * @param {string} speaker  the client and its protocol, for the lines that are printed
 * @param {() => Promise<object[]>} listTools
 * @param {(name: string, args: object) => Promise<{isError?: boolean, structuredContent?: object, content: object[]}>} callTool
 */
export async function journey(speaker, listTools, callTool) {
  const say = (text) => console.log(`${speaker}: ${text}`);
  checkTools(await listTools());
  say("tools are described");

  const { projects } = await answer(callTool, "list_projects", {});
  assert.ok(projects.length > 0, "the connection was added to no project");
  const project_id = projects[0].project_id;
  const listed = await answer(callTool, "list_graph_sessions", { project_id });
  assert.equal(listed.project_id, project_id);
  const session = listed.sessions.find(({ slug }) => slug === "folder-report");
  assert.ok(session, `folder-report is not shared: ${JSON.stringify(listed)}`);
  assert.match(session.graph_session_id, /^gs_[0-9a-f]{32}$/);
  say("folder-report is shared");

  const request = {
    graph_session_id: session.graph_session_id,
    arguments: { folder },
    idempotency_key: `real-client-${randomUUID()}`,
  };
  const ticket = await answer(callTool, "run_graph_session", request);
  assert.equal(ticket.status, "queued");
  assert.equal(ticket.read_with, "get_graph_run");
  const again = await answer(callTool, "run_graph_session", request);
  assert.equal(again.command_id, ticket.command_id, "the same key queued a second run");
  const other = { ...request, arguments: { folder, changed: true } };
  const refusal = await refused(callTool, "run_graph_session", other);
  assert.ok(!refusal.includes(ticket.command_id), `the refusal names an id: ${refusal}`);
  say("a retry got the same ticket");

  const run = await finished(callTool, ticket.command_id);
  assert.equal(run.status, "completed", JSON.stringify(run));
  assert.equal(run.result.files, countFiles(folder), JSON.stringify(run.result));
  say("the run completed and its result was read");

  for (const command_id of [randomUUID(), "no-such-run"]) {
    assert.equal(await refused(callTool, "get_graph_run", { command_id }), NOT_FOUND);
    assert.equal(await refused(callTool, "cancel_graph_run", { command_id }), NOT_FOUND);
  }
  say("an unknown id tells nothing");

  await tasks(say, callTool, project_id);
}

function checkTools(tools) {
  const names = tools.map(({ name }) => name);
  for (const name of ["list_projects", ...GRAPH_TOOLS, ...CHAT_TOOLS]) {
    assert.ok(names.includes(name), `${name} is missing from ${names}`);
  }
  assert.equal(new Set(names).size, names.length, `a tool is listed twice: ${names}`);
  for (const tool of tools) {
    assert.ok(tool.description?.length > 20, `${tool.name} is not described`);
    assert.equal(tool.inputSchema?.type, "object", `${tool.name}: its arguments are no object`);
    assert.equal(tool.inputSchema.additionalProperties, false, `${tool.name} takes any argument`);
    assert.equal(typeof tool.annotations?.readOnlyHint, "boolean", `${tool.name} has no readOnlyHint`);
    const schemes = tool._meta?.securitySchemes;
    assert.equal(schemes?.[0]?.type, "oauth2", `${tool.name} names no way to sign in`);
    assert.ok(schemes[0].scopes.length > 0, `${tool.name} names no scope`);
  }
  const start = tools.find(({ name }) => name === "run_graph_session");
  assert.equal(start.annotations.readOnlyHint, false);
  assert.equal(start.annotations.destructiveHint, true);
  assert.ok(start.description.includes("get_graph_run"), "the start tool does not say how to read the result");
}

async function finished(callTool, command_id) {
  let run;
  for (let wait = 0; wait < WAITS_MAX; wait += 1) {
    run = await answer(callTool, "get_graph_run", { command_id, wait_seconds: WAIT_SECONDS });
    assert.equal(run.command_id, command_id);
    if (run.status !== "queued" && run.status !== "running") return run;
  }
  assert.fail(`still ${run.status} after ${WAITS_MAX} waits of up to ${WAIT_SECONDS} s`);
}

function countFiles(path) {
  return readdirSync(path, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile()).length;
}
