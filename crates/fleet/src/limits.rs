//! Every number of the engine, once, with the place it comes from. "engine" is research/engine.md.

/// Calls that run at the same time when a Graph names no number (engine §3.2).
pub const MAX_CONCURRENCY: u32 = 8;
/// The most that a Graph may ask for (engine §3.2).
pub const MAX_CONCURRENCY_HARD: u32 = 64;
/// Agent calls of a run when a Graph names no number (engine §3.2).
pub const AGENT_CALLS: u32 = 200;
/// The most that a Graph may ask for (engine §3.2).
pub const AGENT_CALLS_HARD: u32 = 1_000;
/// Calls of every kind in one run: a loop over cheap calls ends some time (our choice).
pub const CALLS_MAX: u64 = 100_000;
/// Calls that wait or run at the same time: what one list of the largest size needs, twice.
pub const CALLS_OPEN_MAX: usize = 2 * LIST_ITEMS_MAX;
/// Most items of `parallel` and `pipeline`; longer lists are refused, never cut (engine §3.2).
pub const LIST_ITEMS_MAX: usize = 4_096;
/// Longest run when a Graph names no number, in seconds (our choice: one hour).
pub const WALL_S: u64 = 3_600;
/// The longest that a Graph may ask for, in seconds (our choice: one day).
pub const WALL_S_HARD: u64 = 86_400;
/// Most tries of one `retry` (desktop §2: max 1..20).
pub const RETRIES_MAX: usize = 20;
/// Longest `sleep`, in milliseconds: no longer than the longest run.
pub const SLEEP_MS_MAX: u64 = WALL_S_HARD * 1_000;

/// Memory of a script, in bytes (engine §1.4).
pub const SCRIPT_MEMORY_BYTES: usize = 64 * 1024 * 1024;
/// Extra memory for writing the result or the error of a script that used all of its own.
pub const REPORT_MEMORY_BYTES: usize = 16 * 1024 * 1024;
/// Stack of a script, in bytes (engine §1.4).
pub const SCRIPT_STACK_BYTES: usize = 512 * 1024;
/// Stack of the thread that runs the script, in bytes. The engine's own C code recurses beyond
/// the script's stack before it looks.
pub const SCRIPT_THREAD_STACK_BYTES: usize = 8 * 1024 * 1024;
/// Processor time of a script between two awaits, in milliseconds (desktop §4).
pub const SLICE_CPU_MS: u64 = 1_000;
/// Processor time of a script in one run, in milliseconds (engine §1.4).
pub const TOTAL_CPU_MS: u64 = 30_000;
/// Longest time without an answer before the process is killed, in milliseconds of real time.
/// The kernel counts processor time itself; this is for a process that does not even get any.
pub const ANSWER_WALL_MS: u64 = 20_000;
/// Real time that a cancelled script has for its `finally` blocks, in milliseconds (engine §3.2
/// gives it one second of processor time).
pub const CANCEL_GRACE_MS: u64 = 2_000;

/// Largest result, in bytes of JSON: far above what travels, bounded for the history.
pub const RESULT_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Most bytes that a script may hand over between two awaits.
pub const BATCH_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Largest call, in bytes: a prompt with its schema, or a tool's name and arguments (our choice:
/// several times what the models of today read at once).
pub const CALL_BYTES_MAX: u64 = 1024 * 1024;
/// Longest JSON text of a call that is read at all, in bytes: a prompt of the largest size whose
/// every character is escaped with a backslash.
pub const CALL_JSON_BYTES_MAX: usize = 2 * 1024 * 1024;
/// Most bytes of all calls of a run that wait for the gate. They lie in the engine's memory, not
/// in the script's (our choice: a list of the largest size with 4 kB each).
pub const WAITING_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Largest frame between engine and script process, in bytes.
pub const FRAME_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Longest error text, in UTF-16 units; the relay cuts it further (mission §2).
pub const ERROR_UTF16_MAX: usize = 20_000;
/// Log lines of one run; further ones are dropped, and the last kept one says so.
pub const LOG_LINES_MAX: u64 = 1_000;
/// Longest log line, in UTF-16 units; longer ones are cut.
pub const LOG_UTF16_MAX: usize = 2_000;
/// Longest label of a call, in UTF-16 units; longer ones are cut.
pub const LABEL_UTF16_MAX: usize = 200;
/// Failures of one run that are listed; all are counted.
pub const FAILURES_MAX: usize = 100;
/// Longest message of a listed failure, in UTF-16 units.
pub const FAILURE_UTF16_MAX: usize = 500;
/// Deepest nesting of `meta`.
pub const META_DEPTH_MAX: usize = 64;

const _: () = {
    assert!(MAX_CONCURRENCY <= MAX_CONCURRENCY_HARD);
    assert!(AGENT_CALLS <= AGENT_CALLS_HARD);
    assert!(WALL_S <= WALL_S_HARD);
    assert!(SLICE_CPU_MS < TOTAL_CPU_MS);
    assert!(RESULT_BYTES_MAX < FRAME_BYTES_MAX && BATCH_BYTES_MAX < FRAME_BYTES_MAX);
    assert!(CALL_BYTES_MAX < WAITING_BYTES_MAX && CALL_JSON_BYTES_MAX < BATCH_BYTES_MAX);
    assert!(SCRIPT_STACK_BYTES * 4 <= SCRIPT_THREAD_STACK_BYTES);
    assert!(ERROR_UTF16_MAX > callboard_domain::limits::ERROR_UTF16_MAX);
};
