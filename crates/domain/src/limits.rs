//! Every number and every published sentence, once, with the place it comes from.
//!
//! "mission", "hub" and "desktop" name the parts of the specification. Relations between the
//! numbers are checked while compiling, at the end of this file.

const SECOND_MS: u64 = 1_000;
const MINUTE_MS: u64 = 60 * SECOND_MS;
const HOUR_MS: u64 = 60 * MINUTE_MS;
const DAY_MS: u64 = 24 * HOUR_MS;

/// Longest result payload the relay posts, in UTF-16 units of its JSON (mission §2: all or nothing).
pub const RESULT_UTF16_MAX: usize = 100_000;
/// Longest error, in UTF-16 units (mission §2: "errors are cut at 2,000 characters").
pub const ERROR_UTF16_MAX: usize = 2_000;
/// Longest `arguments` of a start, in UTF-16 units of their JSON (hub §2).
pub const ARGUMENTS_UTF16_MAX: usize = 100_000;
/// Shortest idempotency key, in code points (mission §2).
pub const IDEMPOTENCY_KEY_CHARS_MIN: usize = 8;
/// Longest idempotency key, in code points (mission §2).
pub const IDEMPOTENCY_KEY_CHARS_MAX: usize = 128;
/// Most sessions in one sync or one list (mission §3.2, hub §3).
pub const SESSIONS_PER_PROJECT_MAX: usize = 100;
/// Most sessions that `list_graph_sessions` returns, and its default (mission §2, hub §2).
pub const LIST_LIMIT_MAX: u64 = 50;
/// Longest name of a project, desktop, connection or Graph, in UTF-16 units.
pub const NAME_UTF16_MAX: usize = 200;
/// Longest description of a Graph, in UTF-16 units.
pub const DESCRIPTION_UTF16_MAX: usize = 2_000;
/// Longest slug, in ASCII characters.
pub const SLUG_CHARS_MAX: usize = 64;
/// Longest phase title, in UTF-16 units; longer ones are cut.
pub const PHASE_UTF16_MAX: usize = 200;

/// Longest text of a task, in UTF-16 units (hub §2).
pub const TASK_TEXT_UTF16_MAX: usize = 8_000;
/// Longest label of a linked chat, in UTF-16 units (hub §2).
pub const CHAT_LABEL_UTF16_MAX: usize = 200;
/// Longest reference of a linked chat, in UTF-16 units.
pub const CHAT_REFERENCE_UTF16_MAX: usize = 500;
/// Longest conversation hint of a host that is kept, in UTF-16 units; a longer one is cut.
pub const HOST_HINT_UTF16_MAX: usize = 200;
/// Longest result of a task, in UTF-16 units (mission §4).
pub const TASK_RESULT_UTF16_MAX: usize = 20_000;
/// Most links that one task may name (mission §4).
pub const TASK_CANDIDATES_MAX: usize = 8;
/// Most waiting tasks that an inbox shows (hub §2).
pub const INBOX_WAITING_MAX: usize = 20;
/// Most claimed tasks of the chat itself that an inbox shows.
pub const INBOX_CLAIMED_MAX: usize = 20;
/// Most recent tasks that an inbox shows (hub §2).
pub const INBOX_RECENT_MAX: usize = 5;
/// Most open tasks that may name one link.
pub const OPEN_TASKS_PER_CHAT_MAX: usize = 1_000;
/// Most links of one connection that are not revoked.
pub const CHATS_PER_CONNECTION_MAX: usize = 1_000;
/// Most tasks that the owner's list shows.
pub const TASKS_LISTED_MAX: usize = 500;
/// Largest artifact, in bytes (hub §2: "≤ 5 MB", read as the larger of its two meanings).
pub const ARTIFACT_BYTES_MAX: usize = 5 * 1024 * 1024;
/// Most artifacts that one claim may upload.
pub const ARTIFACTS_PER_CLAIM_MAX: usize = 20;
/// Most artifacts of one task, over all its claims: a claim that lapses leaves its own behind.
pub const ARTIFACTS_PER_TASK_MAX: usize = 100;
/// Longest name of an artifact, in UTF-16 units.
pub const ARTIFACT_NAME_UTF16_MAX: usize = 200;
/// Longest `artifact_id`, in code points.
pub const ARTIFACT_ID_CHARS_MAX: usize = 128;
/// Longest media type, in ASCII characters.
pub const MEDIA_TYPE_CHARS_MAX: usize = 100;

/// A task expires this long after it was assigned (mission §4: 24 h).
pub const TASK_EXPIRY_MS: u64 = 24 * HOUR_MS;
/// How long a claim lasts where another candidate could take over (30 min:
/// as long as a Graph's dispatcher waits for a chat, mission §4).
pub const TASK_LEASE_MS_DEFAULT: u64 = 30 * MINUTE_MS;
/// Shortest lease that can be configured.
pub const TASK_LEASE_MS_MIN: u64 = SECOND_MS;
/// Time between two turns of the relay (mission §3: "every 20 s").
pub const SYNC_INTERVAL_MS: u64 = 20 * SECOND_MS;
/// Fewest characters of the console's password; length is what makes one strong.
pub const PASSWORD_CHARS_MIN: usize = 12;
/// Most characters of the console's password.
pub const PASSWORD_CHARS_MAX: usize = 256;
/// How long the one-time link to the console works.
pub const SETUP_LINK_MS: u64 = 24 * HOUR_MS;
/// How long a browser stays signed in to the console.
pub const SIGN_IN_MS: u64 = 30 * 24 * HOUR_MS;
/// Wrong passwords within [`SIGN_IN_TRIES_MS`] after which none is looked at any more.
pub const SIGN_IN_TRIES_MAX: usize = 10;
/// The time in which wrong passwords are counted.
pub const SIGN_IN_TRIES_MS: u64 = 5 * MINUTE_MS;
/// Longest name of a browser that is kept.
pub const USER_AGENT_UTF16_MAX: usize = 300;
/// Commands on one page of the console.
pub const RUNS_PER_PAGE: usize = 50;
/// How long a sync that was given up may still reach the hub. Linux goes on for about 100 s to deliver
/// what a closed connection has left (`tcp_orphan_retries`).
pub const LATE_SYNC_MS: u64 = 2 * MINUTE_MS;
/// Time between two control polls of a running command (mission §3.4).
pub const CONTROL_INTERVAL_MS: u64 = 3 * SECOND_MS;
/// Longest that the hub holds a wake-up call (hub §3).
pub const WAKE_HOLD_MS_MAX: u64 = 25 * SECOND_MS;
/// Longest `wait_seconds` (hub §2: Claude Code cuts a silent call at 60 s).
pub const WAIT_SECONDS_MAX: u64 = 40;
/// A desktop that called within this time is online (hub §2).
pub const ONLINE_WINDOW_MS: u64 = 60 * SECOND_MS;
/// A command that nobody started for this long expires (hub §2).
pub const QUEUED_EXPIRY_MS: u64 = 7 * DAY_MS;
/// A running command whose desktop gave no sign for this long fails (hub §2).
pub const SILENT_DESKTOP_MS: u64 = 7 * DAY_MS;
/// `first_check_after_seconds` for a desktop that polls: one pickup interval (hub §2).
pub const FIRST_CHECK_SECONDS: u64 = 20;
/// `then_every_seconds` (hub §2).
pub const THEN_EVERY_SECONDS: u64 = 15;
/// Time between two sweeps, which also store when desktops were last seen.
pub const SWEEP_INTERVAL_MS: u64 = 15 * SECOND_MS;
/// Most rows that one sweep transaction moves.
pub const SWEEP_ROWS_MAX: usize = 256;
/// Most commands that one sync hands out; the rest follow in later turns.
pub const COMMANDS_PER_SYNC_MAX: usize = 50;
/// Most projects named in one wake-up call.
pub const WAKE_PROJECTS_MAX: usize = 200;
/// Longest that a stopping hub waits for calls that do not end by themselves.
pub const SHUTDOWN_DRAIN_MS: u64 = 5 * SECOND_MS;
/// Longest that a hub waits for the rest of a request that has begun.
pub const REQUEST_READ_MS_MAX: u64 = 30 * SECOND_MS;
/// Longest that a desktop waits for running work at shutdown (desktop §1).
pub const SHUTDOWN_GRACE_MS: u64 = 30 * SECOND_MS;

/// Largest request body of the hub, in bytes (hub §2: an artifact of 5 MB in base64).
pub const BODY_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Largest body of a relay call, in bytes: a result of [`RESULT_UTF16_MAX`] however it is escaped, or
/// the sessions of a project.
pub const RELAY_BODY_BYTES_MAX: usize = 2 * 1024 * 1024;
/// Largest MCP message of a caller without a token, in bytes: it can only begin, or ask what there
/// is.
pub const OPEN_BODY_BYTES_MAX: usize = 64 * 1024;
/// A request that is longer than this, in bytes, takes one of the [`LARGE_BODIES_MAX`] places. No
/// call needs more but an upload.
pub const LARGE_BODY_BYTES: usize = 1024 * 1024;
/// Most large requests that the hub handles at once: each is in memory up to three times.
pub const LARGE_BODIES_MAX: usize = 4;
/// Largest Graph script, in bytes.
pub const SCRIPT_BYTES_MAX: usize = 512 * 1024;

/// Whoever asks for a run that is not his, never was, or no longer is (mission §2).
pub const RUN_NOT_FOUND: &str = "Graph run not found or access removed";
/// The same for a Graph session (hub §2).
pub const SESSION_NOT_FOUND: &str = "Graph session not found or access removed";
/// The same for a project (hub §2).
pub const PROJECT_NOT_FOUND: &str = "Project not found or access removed";
/// The same for a linked chat (hub §2).
pub const CHAT_LINK_NOT_FOUND: &str = "Chat link not found or access removed";
/// Why a command whose consent is gone ends cancelled (mission §3.3).
pub const NO_LONGER_SHARED: &str = "Graph session is no longer shared with this project";
/// Why a command expired that nobody started (hub §2).
pub const NOBODY_STARTED: &str = "no desktop started it within 7 days";
/// Why a running command of a silent or revoked desktop fails (hub §2).
pub const DESKTOP_SILENT: &str = "desktop did not report back";
/// Why a run fails whose desktop was killed while it worked (hub §3).
pub const DESKTOP_RESTARTED: &str = "desktop restarted";

const _: () = {
    assert!(CONTROL_INTERVAL_MS < SYNC_INTERVAL_MS);
    assert!(
        SYNC_INTERVAL_MS < ONLINE_WINDOW_MS,
        "a desktop that only polls must look online"
    );
    assert!(WAKE_HOLD_MS_MAX < ONLINE_WINDOW_MS);
    assert!(
        SWEEP_INTERVAL_MS < ONLINE_WINDOW_MS,
        "signs of life are stored in time"
    );
    assert!(IDEMPOTENCY_KEY_CHARS_MIN < IDEMPOTENCY_KEY_CHARS_MAX);
    assert!(
        ERROR_UTF16_MAX < RESULT_UTF16_MAX,
        "a truncated report must still fit"
    );
    assert!(
        ARGUMENTS_UTF16_MAX * 4 < BODY_BYTES_MAX,
        "text that fits must not fail on its bytes"
    );
    assert!(
        RESULT_UTF16_MAX * 6 < RELAY_BODY_BYTES_MAX,
        "nor a result, however it is escaped"
    );
    assert!(
        ARGUMENTS_UTF16_MAX * 6 < LARGE_BODY_BYTES,
        "what is no upload waits for none"
    );
    assert!(
        TASK_LEASE_MS_DEFAULT < TASK_EXPIRY_MS,
        "a lapsed claim leaves time for another candidate"
    );
    assert!(TASK_LEASE_MS_MIN < TASK_LEASE_MS_DEFAULT);
    assert!(
        ARTIFACT_BYTES_MAX.div_ceil(3) * 4 + 64 * 1024 < BODY_BYTES_MAX,
        "an artifact in base64 fits into a request"
    );
    assert!(INBOX_WAITING_MAX < OPEN_TASKS_PER_CHAT_MAX);
    assert!(ARTIFACTS_PER_CLAIM_MAX < ARTIFACTS_PER_TASK_MAX);
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_numbers_are_these() {
        assert_eq!(
            (RESULT_UTF16_MAX, ERROR_UTF16_MAX, ARGUMENTS_UTF16_MAX),
            (100_000, 2_000, 100_000)
        );
        assert_eq!(
            (IDEMPOTENCY_KEY_CHARS_MIN, IDEMPOTENCY_KEY_CHARS_MAX),
            (8, 128)
        );
        assert_eq!((SESSIONS_PER_PROJECT_MAX, LIST_LIMIT_MAX), (100, 50));
        assert_eq!((SYNC_INTERVAL_MS, CONTROL_INTERVAL_MS), (20_000, 3_000));
        assert_eq!(
            (WAKE_HOLD_MS_MAX, WAIT_SECONDS_MAX, ONLINE_WINDOW_MS),
            (25_000, 40, 60_000)
        );
        assert_eq!(
            (QUEUED_EXPIRY_MS, SILENT_DESKTOP_MS),
            (604_800_000, 604_800_000)
        );
        assert_eq!((FIRST_CHECK_SECONDS, THEN_EVERY_SECONDS), (20, 15));
        assert_eq!((TASK_TEXT_UTF16_MAX, CHAT_LABEL_UTF16_MAX), (8_000, 200));
        assert_eq!((TASK_RESULT_UTF16_MAX, TASK_CANDIDATES_MAX), (20_000, 8));
        assert_eq!((INBOX_WAITING_MAX, INBOX_RECENT_MAX), (20, 5));
        assert_eq!(
            (TASK_EXPIRY_MS, TASK_LEASE_MS_DEFAULT),
            (86_400_000, 1_800_000)
        );
    }

    #[test]
    fn the_published_sentences_are_these() {
        assert_eq!(
            NO_LONGER_SHARED,
            "Graph session is no longer shared with this project"
        );
        assert_eq!(CHAT_LINK_NOT_FOUND, "Chat link not found or access removed");
        assert_eq!(DESKTOP_SILENT, "desktop did not report back");
        assert_eq!(DESKTOP_RESTARTED, "desktop restarted");
    }
}
