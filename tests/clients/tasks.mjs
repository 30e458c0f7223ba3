// What a chat does with the tasks that its owner assigns, step by step: the published sequences.
// The owner's side is the binary itself, on the data folder of the running hub.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { answer, refused, required } from "./calls.mjs";

const binary = required("CALLBOARD_BINARY");
const leaseSeconds = Number(required("CALLBOARD_LEASE_SECONDS"));
const TRY_EVERY_MS = 100;
const NO_CHAT = "Chat link not found or access removed";

/** Links two conversations, and plays takeover, replay, upload and cancel. */
export async function tasks(say, callTool, project_id) {
  const first = await linked(callTool, project_id, "first");
  const second = await linked(callTool, project_id, "second");
  assert.notEqual(first, second, "each conversation has a link of its own");
  const { tasks: none } = await answer(callTool, "read_linked_chat_tasks", { chat_link_id: first });
  assert.deepEqual(none, []);
  say("two chats are linked, and nothing waits");

  await takeover(callTool, first, second);
  say("a lapsed claim was taken over, and the late answer was refused");
  await replay(callTool, first);
  say("a repeated result was a replay, and a changed one was refused");
  await cancelled(callTool, first);
  say("a cancelled task took no result");

  for (const chat_link_id of [randomUUID(), "no-such-chat"]) {
    assert.equal(await refused(callTool, "read_linked_chat_tasks", { chat_link_id }), NO_CHAT);
    const claim = { chat_link_id, task_id: randomUUID() };
    assert.equal(await refused(callTool, "claim_linked_chat_task", claim), NO_CHAT);
  }
  const unknown = { chat_link_id: first, task_id: randomUUID() };
  assert.equal(await refused(callTool, "claim_linked_chat_task", unknown), "not claimable: missing");
  say("an unknown chat or task tells nothing");
}

async function linked(callTool, project_id, label) {
  const request = { project_id, label: `${label} <b>chat</b>`, idempotency_key: `link-${randomUUID()}` };
  const link = await answer(callTool, "link_current_chat", request);
  assert.deepEqual(link, { chat_link_id: link.chat_link_id, project_id, label: request.label });
  const again = await answer(callTool, "link_current_chat", request);
  assert.equal(again.chat_link_id, link.chat_link_id, "the same key made a second link");
  return link.chat_link_id;
}

async function takeover(callTool, first, second) {
  const task_id = assign([first, second], "Who answers first?");
  const { tasks: waiting } = await answer(callTool, "read_linked_chat_tasks", { chat_link_id: second });
  assert.equal(waiting.length, 1);
  assert.deepEqual(waiting[0], { task_id, status: "queued", text: "Who answers first?", expires_at: waiting[0].expires_at });
  const lapsing = await claimed(callTool, first, task_id);
  const held = Date.now();
  assert.ok(Math.abs(lapsing.lease_until - held / 1000 - leaseSeconds) < 3, JSON.stringify(lapsing));
  assert.deepEqual(await claimed(callTool, first, task_id), lapsing, "a repeated claim is the same claim");
  let taken;
  while (taken === undefined) {
    const result = await callTool("claim_linked_chat_task", { chat_link_id: second, task_id });
    if (!result.isError) {
      taken = result.structuredContent;
    } else {
      assert.equal(result.content[0].text, "not claimable: claimed");
      assert.ok(Date.now() - held < (leaseSeconds + 30) * 1000, "the claim never lapsed");
      await sleep(TRY_EVERY_MS);
    }
  }
  assert.ok(Date.now() / 1000 >= lapsing.lease_until, "the claim was taken over before its lease ended");
  assert.notEqual(taken.claim_id, lapsing.claim_id);
  const late = submission(first, task_id, lapsing.claim_id, "late");
  const stale = await refused(callTool, "submit_linked_chat_result", late);
  assert.equal(stale, "rejected: stale claim, task was re-claimed");
  // A client that starts a process a call may need another claim by now.
  const { claim_id } = await claimed(callTool, second, task_id);
  const mine = submission(second, task_id, claim_id, "mine");
  assert.deepEqual(await answer(callTool, "submit_linked_chat_result", mine), { ok: true });
}

async function replay(callTool, chat_link_id) {
  const task_id = assign([chat_link_id], "What is two and two?");
  const { claim_id } = await claimed(callTool, chat_link_id, task_id);
  const artifact = {
    chat_link_id,
    task_id,
    claim_id,
    artifact_id: "sum",
    name: "sum.txt",
    media_type: "text/plain",
    text: "2 + 2 = 4\n",
  };
  const stored = await answer(callTool, "upload_linked_chat_artifact", artifact);
  assert.equal(stored.size_bytes, 10);
  const twice = await answer(callTool, "upload_linked_chat_artifact", artifact);
  assert.deepEqual(twice, { ...stored, replayed: true });
  const other = await refused(callTool, "upload_linked_chat_artifact", { ...artifact, text: "5\n" });
  assert.equal(other, "rejected: this artifact_id holds other content, use a new artifact_id");

  const request = submission(chat_link_id, task_id, claim_id, "4");
  assert.deepEqual(await answer(callTool, "submit_linked_chat_result", request), { ok: true });
  for (let time = 2; time <= 4; time += 1) {
    const again = await answer(callTool, "submit_linked_chat_result", request);
    assert.deepEqual(again, { ok: true, replayed: true });
  }
  const changed = await refused(callTool, "submit_linked_chat_result", { ...request, result: "5" });
  assert.equal(changed, "rejected: task is completed");
  const task = owner("task", "show", task_id);
  assert.equal(task.result, "4", "the first result stays");
  assert.equal(task.artifacts.length, 1);
  assert.equal(task.artifacts[0].sha256, stored.sha256);
  const over = await refused(callTool, "claim_linked_chat_task", { chat_link_id, task_id });
  assert.equal(over, "not claimable: completed");
}

async function cancelled(callTool, chat_link_id) {
  const task_id = assign([chat_link_id], "Never mind.");
  const { claim_id } = await claimed(callTool, chat_link_id, task_id);
  assert.deepEqual(owner("task", "cancel", task_id), { cancelled: true, status: "cancelled" });
  const request = submission(chat_link_id, task_id, claim_id, "too late");
  assert.equal(await refused(callTool, "submit_linked_chat_result", request), "rejected: task is cancelled");
  const claim = await refused(callTool, "claim_linked_chat_task", { chat_link_id, task_id });
  assert.equal(claim, "not claimable: cancelled");
}

async function claimed(callTool, chat_link_id, task_id) {
  const claim = await answer(callTool, "claim_linked_chat_task", { chat_link_id, task_id });
  assert.ok(Number.isInteger(claim.lease_until), JSON.stringify(claim));
  return claim;
}

function submission(chat_link_id, task_id, claim_id, result) {
  return { chat_link_id, task_id, claim_id, status: "completed", result };
}

/** Assigns twice with one key, as after a lost answer. */
function assign(chats, text) {
  const command = ["task", "assign", chats.join(","), text, "--idempotency-key", `assign-${randomUUID()}`];
  const { task, replayed } = owner(...command);
  assert.equal(replayed, false);
  const again = owner(...command);
  assert.deepEqual([again.task.task_id, again.replayed], [task.task_id, true]);
  return task.task_id;
}

/** One of the owner's commands, and the JSON that it prints. */
function owner(...command) {
  const { status, stdout, stderr } = spawnSync(binary, ["--json", ...command], { encoding: "utf8", timeout: 30_000 });
  assert.equal(status, 0, `${command.join(" ")}: ${stdout}${stderr}`);
  return JSON.parse(stdout);
}
