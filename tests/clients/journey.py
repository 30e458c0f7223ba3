"""What a chat does with Callboard, step by step, whichever client carries the calls.

A script hands in how its client lists and calls tools, in the shapes of the `mcp` package; each step raises
when the hub breaks a promise. The steps are those of journey.mjs.
"""

import pathlib
import re
import uuid

from calls import answer, check, refused, required
from tasks import tasks

GRAPH_TOOLS = ["list_graph_sessions", "run_graph_session", "get_graph_run", "cancel_graph_run"]
CHAT_TOOLS = [
    "link_current_chat",
    "read_linked_chat_tasks",
    "claim_linked_chat_task",
    "submit_linked_chat_result",
    "upload_linked_chat_artifact",
]
NOT_FOUND = "Graph run not found or access removed"
WAIT_SECONDS = 20
WAITS_MAX = 6


# Where the hub is and what the connection may use: set by `cargo xtask test`.
URL = required("CALLBOARD_URL")
TOKEN = required("CALLBOARD_TOKEN")
FOLDER = required("CALLBOARD_FOLDER")


async def journey(speaker, list_tools, call_tool):
    """Lists, starts, retries, waits, reads, and asks for what is not there."""

    def say(text):
        print(f"{speaker}: {text}", flush=True)

    check_tools(await list_tools())
    say("tools are described")

    projects = (await answer(call_tool, "list_projects", {}))["projects"]
    check(projects, "the connection was added to no project")
    project_id = projects[0]["project_id"]
    listed = await answer(call_tool, "list_graph_sessions", {"project_id": project_id})
    check(listed["project_id"] == project_id, listed)
    session = next((one for one in listed["sessions"] if one["slug"] == "folder-report"), None)
    check(session, f"folder-report is not shared: {listed}")
    check(re.fullmatch("gs_[0-9a-f]{32}", session["graph_session_id"]), session)
    say("folder-report is shared")

    request = {
        "graph_session_id": session["graph_session_id"],
        "arguments": {"folder": FOLDER},
        "idempotency_key": f"real-client-{uuid.uuid4()}",
    }
    ticket = await answer(call_tool, "run_graph_session", request)
    check(ticket["status"] == "queued", ticket)
    check(ticket["read_with"] == "get_graph_run", ticket)
    again = await answer(call_tool, "run_graph_session", request)
    check(again["command_id"] == ticket["command_id"], "the same key queued a second run")
    other = request | {"arguments": {"folder": FOLDER, "changed": True}}
    refusal = await refused(call_tool, "run_graph_session", other)
    check(ticket["command_id"] not in refusal, f"the refusal names an id: {refusal}")
    say("a retry got the same ticket")

    run = await finished(call_tool, ticket["command_id"])
    check(run["status"] == "completed", run)
    files = sum(path.is_file() for path in pathlib.Path(FOLDER).rglob("*"))
    check(run["result"]["files"] == files, run["result"])
    say("the run completed and its result was read")

    for command_id in [str(uuid.uuid4()), "no-such-run"]:
        for tool in ["get_graph_run", "cancel_graph_run"]:
            text = await refused(call_tool, tool, {"command_id": command_id})
            check(text == NOT_FOUND, f"{tool}: {text}")
    say("an unknown id tells nothing")

    await tasks(say, call_tool, project_id)


def check_tools(tools):
    names = [tool.name for tool in tools]
    for name in ["list_projects", *GRAPH_TOOLS, *CHAT_TOOLS]:
        check(name in names, f"{name} is missing from {names}")
    check(len(set(names)) == len(names), f"a tool is listed twice: {names}")
    for tool in tools:
        check(len(tool.description or "") > 20, f"{tool.name} is not described")
        check(tool.input_schema.get("type") == "object", f"{tool.name}: its arguments are no object")
        check(tool.input_schema.get("additionalProperties") is False, f"{tool.name} takes any argument")
        check(tool.annotations and isinstance(tool.annotations.read_only_hint, bool), f"{tool.name} has no readOnlyHint")
        schemes = (tool.meta or {}).get("securitySchemes") or [{}]
        check(schemes[0].get("type") == "oauth2", f"{tool.name} names no way to sign in")
        check(schemes[0].get("scopes"), f"{tool.name} names no scope")
    start = next(tool for tool in tools if tool.name == "run_graph_session")
    check(start.annotations.read_only_hint is False, start.annotations)
    check(start.annotations.destructive_hint is True, start.annotations)
    check("get_graph_run" in start.description, "the start tool does not say how to read the result")


async def finished(call_tool, command_id):
    for _ in range(WAITS_MAX):
        run = await answer(call_tool, "get_graph_run", {"command_id": command_id, "wait_seconds": WAIT_SECONDS})
        check(run["command_id"] == command_id, run)
        if run["status"] not in ("queued", "running"):
            return run
    raise AssertionError(f"still {run['status']} after {WAITS_MAX} waits of up to {WAIT_SECONDS} s")
