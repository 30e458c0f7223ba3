//! What the statements promise of themselves: asked of SQLite, which has them all.

use rusqlite::StatementStatus;

use super::*;
use crate::open;

/// What SQLite says it will do for `sql`, a line a step.
fn plan(sql: &str) -> Vec<String> {
    let connection = open::memory().unwrap();
    let mut statement = connection
        .prepare(&format!("EXPLAIN QUERY PLAN {sql}"))
        .unwrap();
    let count = statement.parameter_count();
    let nothing = std::iter::repeat_n(rusqlite::types::Null, count);
    let lines = statement.query_map(rusqlite::params_from_iter(nothing), |row| row.get(3));
    lines.unwrap().collect::<Result<_, _>>().unwrap()
}

#[test]
fn no_statement_scans_a_table() {
    for (name, sql) in ALL {
        for line in plan(sql) {
            // The hub has one owner.
            let small = line.starts_with("SCAN owners");
            assert!(small || !line.starts_with("SCAN"), "{name}: {line}\n{sql}");
        }
    }
}

#[test]
fn what_waits_and_what_is_due_come_from_the_partial_indexes() {
    for (sql, index) in [
        (
            WAITING_RUNS,
            "runs_open (desktop_id=? AND project_id=? AND started_at=?)",
        ),
        (
            STARTED_RUNS,
            "runs_open (desktop_id=? AND project_id=? AND started_at>?)",
        ),
        (DUE_RUNS, "runs_due (due_at<?)"),
        (ANY_DUE, "runs_due (due_at<?)"),
        (DUE_TASKS, "tasks_due (due_at<?)"),
        (ANY_TASK_DUE, "tasks_due (due_at<?)"),
        (
            OPEN_TASKS_OF_LINK,
            "task_candidates_by_link (link_id=? AND finished_at=?)",
        ),
        (
            LAST_TASKS_OF_LINK,
            "task_candidates_by_link (link_id=? AND finished_at>?)",
        ),
        (
            MORE_OPEN_TASKS,
            "task_candidates_by_link (link_id=? AND finished_at=?)",
        ),
        (TASKS_OF_OWNER, "tasks_of_owner (owner_id=?)"),
        (LINKS_OF_CONNECTION, "chat_links_live (connection_id=?)"),
        (MORE_LINKS, "chat_links_live (connection_id=?)"),
        (OWNED_RUNS, "runs_of_owner (owner_id=? AND rowid<?)"),
        (
            OWNED_RUNS_BY_STATUS,
            "runs_of_owner_by_status (owner_id=? AND status=? AND rowid<?)",
        ),
        (RUN_COUNTS, "runs_of_owner_by_status (owner_id=?)"),
    ] {
        let lines = plan(sql);
        assert!(lines[0].contains(index), "{lines:?}");
    }
    let sorted = |sql| plan(sql).iter().any(|line| line.contains("ORDER BY"));
    for sql in [
        WAITING_RUNS,
        DUE_TASKS,
        OPEN_TASKS_OF_LINK,
        LAST_TASKS_OF_LINK,
        TASKS_OF_OWNER,
        OWNED_RUNS,
        OWNED_RUNS_BY_STATUS,
    ] {
        assert!(!sorted(sql), "the index gives their order: {sql}");
    }
}

#[test]
fn a_task_of_a_chat_is_found_by_its_id_however_many_the_chat_had() {
    let lines = plan(TASK_OF_LINK);
    assert!(lines[0].contains("task_id=?"), "{lines:?}");
    assert!(lines[1].contains("task_seq=? AND link_id=?"), "{lines:?}");
}

#[test]
fn no_statement_compares_a_status() {
    // Lists and counts are what somebody asked to read; nothing is decided by them.
    let lists = ["OWNED_RUNS_BY_STATUS", "RUN_COUNTS"];
    for (name, sql) in ALL.iter().filter(|(name, _)| !lists.contains(name)) {
        let condition = sql
            .split_once("WHERE")
            .map_or("", |(_, condition)| condition);
        assert!(!condition.contains("status"), "{name}");
    }
}

#[test]
fn a_statement_keeps_its_plan_when_other_values_are_bound() {
    let connection = open::memory().unwrap();
    for (name, sql) in ALL.iter().filter(|(_, sql)| sql.starts_with("SELECT")) {
        let mut statement = connection.prepare(sql).unwrap();
        for value in 1_i64..4 {
            let values = std::iter::repeat_n(value, statement.parameter_count());
            let values = rusqlite::params_from_iter(values);
            assert!(!statement.exists(values).unwrap(), "{name} finds nothing");
            let planned = statement.get_status(StatementStatus::RePrepare);
            assert_eq!(planned, 0, "{name} was planned again");
        }
    }
}

#[test]
fn each_connection_keeps_all_its_statements() {
    assert!(ALL.len() < open::STATEMENTS_KEPT, "{}", ALL.len());
}
