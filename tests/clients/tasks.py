"""What a chat does with the tasks that its owner assigns, step by step: the published sequences.

The owner's side is the binary itself, on the data folder of the running hub. The steps are those of tasks.mjs.
"""

import asyncio
import json
import subprocess
import time
import uuid

from calls import answer, check, refused, required

BINARY = required("CALLBOARD_BINARY")
LEASE_SECONDS = int(required("CALLBOARD_LEASE_SECONDS"))
TRY_EVERY_SECONDS = 0.1
NO_CHAT = "Chat link not found or access removed"


async def tasks(say, call_tool, project_id):
    """Links two conversations, and plays takeover, replay, upload and cancel."""
    first = await linked(call_tool, project_id, "first")
    second = await linked(call_tool, project_id, "second")
    check(first != second, "each conversation has a link of its own")
    inbox = await answer(call_tool, "read_linked_chat_tasks", {"chat_link_id": first})
    check(inbox == {"chat_link_id": first, "tasks": []}, inbox)
    say("two chats are linked, and nothing waits")

    await takeover(call_tool, first, second)
    say("a lapsed claim was taken over, and the late answer was refused")
    await replay(call_tool, first)
    say("a repeated result was a replay, and a changed one was refused")
    await cancelled(call_tool, first)
    say("a cancelled task took no result")

    for unknown in [str(uuid.uuid4()), "no-such-chat"]:
        claim = {"chat_link_id": unknown, "task_id": str(uuid.uuid4())}
        for tool, arguments in [("read_linked_chat_tasks", {"chat_link_id": unknown}), ("claim_linked_chat_task", claim)]:
            text = await refused(call_tool, tool, arguments)
            check(text == NO_CHAT, f"{tool}: {text}")
    unknown_task = {"chat_link_id": first, "task_id": str(uuid.uuid4())}
    text = await refused(call_tool, "claim_linked_chat_task", unknown_task)
    check(text == "not claimable: missing", text)
    say("an unknown chat or task tells nothing")


async def linked(call_tool, project_id, label):
    request = {"project_id": project_id, "label": f"{label} <b>chat</b>", "idempotency_key": f"link-{uuid.uuid4()}"}
    link = await answer(call_tool, "link_current_chat", request)
    check(set(link) == {"chat_link_id", "project_id", "label"}, link)
    check((link["project_id"], link["label"]) == (project_id, request["label"]), link)
    again = await answer(call_tool, "link_current_chat", request)
    check(again == link, "the same key made a second link")
    return link["chat_link_id"]


async def takeover(call_tool, first, second):
    task_id = assign([first, second], "Who answers first?")
    inbox = await answer(call_tool, "read_linked_chat_tasks", {"chat_link_id": second})
    [waiting] = inbox["tasks"]
    expected = {"task_id": task_id, "status": "queued", "text": "Who answers first?", "expires_at": waiting["expires_at"]}
    check(waiting == expected, waiting)
    lapsing = await claimed(call_tool, first, task_id)
    held = time.time()
    check(abs(lapsing["lease_until"] - held - LEASE_SECONDS) < 3, lapsing)
    check(await claimed(call_tool, first, task_id) == lapsing, "a repeated claim is the same claim")
    claim = {"chat_link_id": second, "task_id": task_id}
    while (result := await call_tool("claim_linked_chat_task", claim)).is_error:
        text = result.content[0].text
        check(text == "not claimable: claimed", text)
        check(time.time() - held < LEASE_SECONDS + 30, "the claim never lapsed")
        await asyncio.sleep(TRY_EVERY_SECONDS)
    taken = result.structured_content
    check(time.time() >= lapsing["lease_until"], "the claim was taken over before its lease ended")
    check(taken["claim_id"] != lapsing["claim_id"], taken)
    late = submission(first, task_id, lapsing["claim_id"], "late")
    text = await refused(call_tool, "submit_linked_chat_result", late)
    check(text == "rejected: stale claim, task was re-claimed", text)
    # A client that starts a process a call may need another claim by now.
    claim_id = (await claimed(call_tool, second, task_id))["claim_id"]
    mine = submission(second, task_id, claim_id, "mine")
    check(await answer(call_tool, "submit_linked_chat_result", mine) == {"ok": True}, "the new claim is good")


async def replay(call_tool, chat_link_id):
    task_id = assign([chat_link_id], "What is two and two?")
    claim_id = (await claimed(call_tool, chat_link_id, task_id))["claim_id"]
    artifact = {
        "chat_link_id": chat_link_id,
        "task_id": task_id,
        "claim_id": claim_id,
        "artifact_id": "sum",
        "name": "sum.txt",
        "media_type": "text/plain",
        "text": "2 + 2 = 4\n",
    }
    stored = await answer(call_tool, "upload_linked_chat_artifact", artifact)
    check(stored["size_bytes"] == 10, stored)
    twice = await answer(call_tool, "upload_linked_chat_artifact", artifact)
    check(twice == stored | {"replayed": True}, twice)
    other = await refused(call_tool, "upload_linked_chat_artifact", artifact | {"text": "5\n"})
    check(other == "rejected: this artifact_id holds other content, use a new artifact_id", other)

    request = submission(chat_link_id, task_id, claim_id, "4")
    first = await answer(call_tool, "submit_linked_chat_result", request)
    check(first == {"ok": True}, first)
    for _ in range(3):
        again = await answer(call_tool, "submit_linked_chat_result", request)
        check(again == {"ok": True, "replayed": True}, again)
    changed = await refused(call_tool, "submit_linked_chat_result", request | {"result": "5"})
    check(changed == "rejected: task is completed", changed)
    task = owner("task", "show", task_id)
    check(task["result"] == "4", "the first result stays")
    check([one["sha256"] for one in task["artifacts"]] == [stored["sha256"]], task["artifacts"])
    over = await refused(call_tool, "claim_linked_chat_task", {"chat_link_id": chat_link_id, "task_id": task_id})
    check(over == "not claimable: completed", over)


async def cancelled(call_tool, chat_link_id):
    task_id = assign([chat_link_id], "Never mind.")
    claim_id = (await claimed(call_tool, chat_link_id, task_id))["claim_id"]
    told = owner("task", "cancel", task_id)
    check(told == {"cancelled": True, "status": "cancelled"}, told)
    request = submission(chat_link_id, task_id, claim_id, "too late")
    text = await refused(call_tool, "submit_linked_chat_result", request)
    check(text == "rejected: task is cancelled", text)
    text = await refused(call_tool, "claim_linked_chat_task", {"chat_link_id": chat_link_id, "task_id": task_id})
    check(text == "not claimable: cancelled", text)


async def claimed(call_tool, chat_link_id, task_id):
    claim = await answer(call_tool, "claim_linked_chat_task", {"chat_link_id": chat_link_id, "task_id": task_id})
    check(isinstance(claim["lease_until"], int), claim)
    return claim


def submission(chat_link_id, task_id, claim_id, result):
    return {
        "chat_link_id": chat_link_id,
        "task_id": task_id,
        "claim_id": claim_id,
        "status": "completed",
        "result": result,
    }


def assign(chats, text):
    """Assigns twice with one key, as after a lost answer."""
    command = ["task", "assign", ",".join(chats), text, "--idempotency-key", f"assign-{uuid.uuid4()}"]
    assigned, again = owner(*command), owner(*command)
    check((assigned["replayed"], again["replayed"]) == (False, True), again)
    check(again["task"]["task_id"] == assigned["task"]["task_id"], "the same key gave two tasks")
    return assigned["task"]["task_id"]


def owner(*command):
    """One of the owner's commands, and the JSON that it prints."""
    ended = subprocess.run([BINARY, "--json", *command], capture_output=True, text=True, timeout=30, check=False)
    check(ended.returncode == 0, f"{command}: {ended.stdout}{ended.stderr}")
    return json.loads(ended.stdout)
