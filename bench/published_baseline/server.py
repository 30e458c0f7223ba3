#!/usr/bin/env python3
"""The server of the published chat-task document, made again to stand beside ours in `callboard bench`.

Python's ThreadingHTTPServer over sqlite3 in WAL mode with synchronous=FULL, one database connection a
thread, HTTP/1.1 with kept-alive connections, JSON-RPC 2.0 `tools/call` over POST. It prints its port.

--sweep says what runs before each read, claim and submit:
  scan   two UPDATEs without an index of their own
  index  the same over partial indexes
  guard  two SELECTs first, and the UPDATEs only where something is due (as published)
  none   nothing
"""

import argparse
import hashlib
import json
import sqlite3
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SCHEMA = """
CREATE TABLE IF NOT EXISTS links(id TEXT PRIMARY KEY, project_id TEXT, label TEXT, idem TEXT UNIQUE,
  created_at REAL);
CREATE TABLE IF NOT EXISTS tasks(id TEXT PRIMARY KEY, chat_link_id TEXT, instruction TEXT, status TEXT,
  claim_id TEXT, lease_until REAL, result TEXT, result_sha TEXT, created_at REAL, updated_at REAL,
  expires_at REAL, idem TEXT);
CREATE INDEX IF NOT EXISTS t_link ON tasks(chat_link_id, created_at);
"""
PARTIAL_INDEXES = """
CREATE INDEX IF NOT EXISTS t_lease ON tasks(lease_until) WHERE status='claimed';
CREATE INDEX IF NOT EXISTS t_exp ON tasks(expires_at) WHERE status IN ('queued','claimed');
"""
LEASE_SECONDS = 600
EXPIRY_SECONDS = 86_400


class Store:
    def __init__(self, path, sweep):
        self.path, self.how = path, sweep
        self.of_thread = threading.local()
        connection = self.connection()
        connection.executescript(SCHEMA)
        if sweep in ("index", "guard"):
            connection.executescript(PARTIAL_INDEXES)

    def connection(self):
        found = getattr(self.of_thread, "connection", None)
        if found is None:
            found = sqlite3.connect(self.path, isolation_level=None, timeout=30, check_same_thread=False)
            found.execute("PRAGMA journal_mode=WAL")
            found.execute("PRAGMA synchronous=FULL")
            self.of_thread.connection = found
        return found

    def sweep(self, db, now):
        if self.how == "none":
            return
        if self.how == "guard":
            lapsed = db.execute("SELECT 1 FROM tasks WHERE status='claimed' AND lease_until<=? LIMIT 1", (now,))
            expired = db.execute(
                "SELECT 1 FROM tasks WHERE status IN ('queued','claimed') AND expires_at<=? LIMIT 1", (now,)
            )
            if not lapsed.fetchone() and not expired.fetchone():
                return
        db.execute(
            "UPDATE tasks SET status='expired', updated_at=? WHERE status IN ('queued','claimed') AND expires_at<=?",
            (now, now),
        )
        db.execute(
            "UPDATE tasks SET status='queued', claim_id=NULL, lease_until=NULL, updated_at=? "
            "WHERE status='claimed' AND lease_until<=?",
            (now, now),
        )

    def assign_task(self, db, now, chat_link_id, instruction):
        task_id = str(uuid.uuid4())
        db.execute(
            "INSERT INTO tasks VALUES(?,?,?,'queued',NULL,NULL,NULL,NULL,?,?,?,NULL)",
            (task_id, chat_link_id, instruction, now, now, now + EXPIRY_SECONDS),
        )
        return {"task_id": task_id}

    def read_linked_chat_tasks(self, db, now, chat_link_id):
        self.sweep(db, now)
        rows = db.execute(
            "SELECT id,instruction,status,expires_at FROM tasks WHERE chat_link_id=? "
            "AND status IN ('queued','claimed') ORDER BY created_at LIMIT 20",
            (chat_link_id,),
        ).fetchall()
        names = ("task_id", "instruction", "status", "expires_at")
        return {"tasks": [dict(zip(names, row)) for row in rows]}

    def claim_linked_chat_task(self, db, now, chat_link_id, task_id):
        self.sweep(db, now)
        claim_id, until = str(uuid.uuid4()), now + LEASE_SECONDS
        claimed = db.execute(
            "UPDATE tasks SET status='claimed',claim_id=?,lease_until=?,updated_at=? "
            "WHERE id=? AND chat_link_id=? AND status='queued'",
            (claim_id, until, now, task_id, chat_link_id),
        )
        if claimed.rowcount == 1:
            return {"claim_id": claim_id, "lease_until": until}
        row = db.execute(
            "SELECT status,claim_id,lease_until FROM tasks WHERE id=? AND chat_link_id=?", (task_id, chat_link_id)
        ).fetchone()
        if row and row[0] == "claimed":
            return {"claim_id": row[1], "lease_until": row[2]}
        return {"error": "not claimable: " + (row[0] if row else "missing")}

    def submit_linked_chat_result(self, db, now, chat_link_id, task_id, claim_id, status, result):
        if status not in ("completed", "failed") or len(result) > 20_000:
            return {"error": "invalid"}
        self.sweep(db, now)
        digest = hashlib.sha256((status + result).encode()).hexdigest()
        stored = db.execute(
            "UPDATE tasks SET status=?,result=?,result_sha=?,updated_at=? "
            "WHERE id=? AND chat_link_id=? AND status='claimed' AND claim_id=?",
            (status, result, digest, now, task_id, chat_link_id, claim_id),
        )
        if stored.rowcount == 1:
            return {"ok": True}
        row = db.execute(
            "SELECT status,claim_id,result_sha FROM tasks WHERE id=? AND chat_link_id=?", (task_id, chat_link_id)
        ).fetchone()
        if not row:
            return {"error": "rejected: missing"}
        if row[0] in ("completed", "failed") and row[1:] == (claim_id, digest):
            return {"ok": True, "replayed": True}
        if row[0] in ("completed", "failed", "cancelled", "expired"):
            return {"error": "rejected: task is " + row[0]}
        return {"error": "rejected: stale claim, task was re-claimed"}


TOOLS = {"assign_task", "read_linked_chat_tasks", "claim_linked_chat_task", "submit_linked_chat_result"}


def handler(store):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def log_message(self, *_):
            pass

        def do_POST(self):
            message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            name = message["params"]["name"]
            if name in TOOLS:
                told = getattr(store, name)(store.connection(), time.time(), **message["params"]["arguments"])
            else:
                told = {"error": "unknown tool"}
            content = [{"type": "text", "text": json.dumps(told)}]
            body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": {"content": content}}).encode()
            head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            self.wfile.write(head.encode() + body)

    return Handler


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--db", required=True)
    parser.add_argument("--sweep", default="guard", choices=["scan", "index", "guard", "none"])
    given = parser.parse_args()
    server = Server(("127.0.0.1", 0), handler(Store(given.db, given.sweep)))
    print(server.server_address[1], flush=True)
    server.serve_forever()
