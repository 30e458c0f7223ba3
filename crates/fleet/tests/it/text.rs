//! Text on its way out of a script: halves of surrogate pairs, long errors, syntax errors.

use callboard_agents::{Agents, ScriptedProvider, Tools};
use callboard_domain::{bound_error, utf16_len};
use callboard_fleet::{Event, FleetStatus};

use crate::harness::{block_on, fleet, fleet_with, request, result, run, run_request, script};

crate::runner::suite![
    half_an_emoji_becomes_the_replacement_character_everywhere,
    a_long_error_keeps_whole_characters,
    errors_name_what_was_thrown_and_where,
    results_are_the_engines_own_text,
    syntax_errors_have_the_users_own_lines_and_columns,
    phases_and_log_lines_are_bounded,
];

fn half_an_emoji_becomes_the_replacement_character_everywhere() {
    block_on(async {
        let provider = ScriptedProvider::echo();
        let fleet = fleet_with(Agents::scripted(provider.clone()), Tools::new(Vec::new()));
        for (body, expected) in [
            (
                r#"return { t: "a\u{1F600}".slice(0, 2) }"#,
                r#"{"t":"a\ufffd"}"#,
            ),
            (r#"return "\ud83d""#, r#""\ufffd""#),
            (r#"return "\u{1F600}\0""#, "\"\u{1F600}\\u0000\""),
            (r#"return { "\ude00": 1 }"#, r#"{"\ufffd":1}"#),
            (r#"return JSON.rawJSON('"\ud83d"')"#, "\"\u{fffd}\""),
            (r#"return await agent("p\ud83d")"#, "\"answer: p\u{fffd}\""),
            (
                r#"return await tool("no\ud83d").catch((e) => e.message.includes("no\ufffd"))"#,
                "true",
            ),
        ] {
            assert_eq!(result(&fleet, body).await, expected, "{body}");
        }
        assert_eq!(provider.prompts(), ["p\u{fffd}"]);
        let thrown = run(&fleet, r#"throw new Error("x\ud83d")"#).await;
        assert_eq!(thrown.status, FleetStatus::Failed);
        assert_eq!(
            thrown.error.as_deref(),
            Some("Error: x\u{fffd} (graph.js:2:11)")
        );
        let body =
            r#"log("l\ud83d"); phase("p\ud83d"); await parallel([() => { throw "t\ud83d" }])"#;
        let (end, events) = run_request(&fleet, request(script(body))).await;
        assert_eq!(end.failures[0].message, "t\u{fffd}");
        assert!(events.contains(&Event::Log {
            message: "l\u{fffd}".to_owned()
        }));
        assert!(events.contains(&Event::Phase {
            title: "p\u{fffd}".to_owned()
        }));
    });
}

fn a_long_error_keeps_whole_characters() {
    block_on(async {
        let fleet = fleet();
        let end = run(&fleet, r#"throw new Error("\ud55c".repeat(5000))"#).await;
        let posted = bound_error(end.error.as_deref().unwrap());
        assert_eq!(utf16_len(&posted), 2_000);
        assert!(posted.ends_with('\u{d55c}'));
        let end = run(
            &fleet,
            r#"throw new Error("a".repeat(1992) + "\u{1F600}b")"#,
        )
        .await;
        let posted = bound_error(end.error.as_deref().unwrap());
        assert_eq!(utf16_len(&posted), 1_999, "the pair would have been split");
        let end = run(&fleet, r#"throw new Error("y".repeat(5e7))"#).await;
        assert!(utf16_len(end.error.as_deref().unwrap()) <= 20_000);
    });
}

fn errors_name_what_was_thrown_and_where() {
    block_on(async {
        let fleet = fleet();
        for (body, code, error) in [
            (
                "null.x",
                "script_error",
                "TypeError: cannot read property 'x' of null (graph.js:2:1)",
            ),
            (
                "\n\n  boom()",
                "script_error",
                "ReferenceError: boom is not defined (graph.js:4:3)",
            ),
            ("throw 'text'", "script_error", "Thrown: text"),
            ("throw { a: 1 }", "script_error", "Thrown: {\"a\":1}"),
            ("throw undefined", "script_error", "Thrown: undefined"),
            (
                "throw new GraphError('no', 'mine')",
                "mine",
                "GraphError: no (graph.js:2:11)",
            ),
            (
                "await agent()",
                "script_error",
                "TypeError: agent(prompt, options): the prompt must be a string (graph.js:2:7)",
            ),
            (
                "await graph('other')",
                "not_available",
                "GraphError: graph() is not available yet: it comes later (graph.js:2:7)",
            ),
            (
                "await chat('link', 'x')",
                "not_available",
                "GraphError: chat() is not available yet: it comes later (graph.js:2:7)",
            ),
        ] {
            let end = run(&fleet, body).await;
            assert_eq!(end.status, FleetStatus::Failed, "{body}");
            assert_eq!(
                (end.code.as_deref(), end.error.as_deref()),
                (Some(code), Some(error)),
                "{body}"
            );
        }
        let spiteful =
            "throw Object.defineProperty(new Error('x'), 'message', { get() { throw 1 } })";
        assert_eq!(
            run(&fleet, spiteful).await.code.as_deref(),
            Some("script_error")
        );
        let endless =
            "throw Object.defineProperty(new Error('x'), 'message', { get() { for (;;) {} } })";
        assert_eq!(
            run(&fleet, endless).await.code.as_deref(),
            Some("cpu_limit")
        );
    });
}

fn results_are_the_engines_own_text() {
    block_on(async {
        let fleet = fleet();
        for (body, expected) in [
            ("return 1.0", "1"),
            ("return [1e21, -0, 0.1, NaN]", "[1e+21,0,0.1,null]"),
            ("return undefined", "null"),
            ("", "null"),
            ("return { b: 1, a: undefined }", r#"{"b":1}"#),
            ("return new Date(0)", r#""1970-01-01T00:00:00.000Z""#),
            ("return '\\n\"'", r#""\n\"""#),
        ] {
            assert_eq!(result(&fleet, body).await, expected, "{body}");
        }
        let declared = "export const meta = { name: 'n', description: 'd', result: { type: 'object', required: ['ok'] } };\nreturn args";
        let mut wrong = request(declared.to_owned());
        let (end, _) = run_request(&fleet, wrong.clone()).await;
        assert_eq!(end.code.as_deref(), Some("result_mismatch"), "{end:?}");
        assert!(end.error.unwrap().contains("\"ok\" is a required property"));
        wrong.arguments = r#"{"ok":"\ud83d"}"#.to_owned();
        let (end, _) = run_request(&fleet, wrong).await;
        assert_eq!(end.result.as_deref(), Some("{\"ok\":\"\u{fffd}\"}"));
        let end = run(&fleet, "return 'x'.repeat(9e6)").await;
        assert_eq!(end.code.as_deref(), Some("result_not_json"));
    });
}

fn syntax_errors_have_the_users_own_lines_and_columns() {
    block_on(async {
        let fleet = fleet();
        for (body, line, column, message) in [
            (
                "\n\n  await agent('x', { schema: S )",
                4,
                32,
                "Unexpected token ')'",
            ),
            ("const a = 1;\nconst a = 2;", 3, 9, "redefinition"),
            ("if (", 2, 5, "unexpected token"),
            ("'abc", 2, 1, "unexpected end of string"),
            ("import x from 'y'", 2, 8, "Unexpected identifier"),
            ("} }", 2, 3, "Unexpected token '}'"),
            ("export const more = 1", 2, 1, "unsupported keyword: export"),
            ("const x: number = 1", 2, 8, "missing initializer"),
        ] {
            let error = fleet.check(&script(body)).await.expect_err(body);
            assert_eq!(
                (error.line, error.column),
                (line, column),
                "{body}: {error}"
            );
            assert!(error.message.contains(message), "{body}: {error}");
            let end = run(&fleet, body).await;
            assert_eq!(end.code.as_deref(), Some("script_error"));
            assert!(
                end.error
                    .unwrap()
                    .starts_with(&format!("line {line}, column {column}: "))
            );
        }
        let first_line = "export const meta = { name: 'n', description: 'd' }; foo(1;";
        let error = fleet.check(first_line).await.unwrap_err();
        assert_eq!((error.line, error.column), (1, 59), "{error}");
        let closes_early = script("return 1 }); for (;;) {} (async()=>{");
        assert!(
            fleet.check(&closes_early).await.is_err(),
            "a check runs nothing"
        );
    });
}

fn phases_and_log_lines_are_bounded() {
    block_on(async {
        let body = "phase('p'.repeat(1e5)); log('l'.repeat(1e5)); log({ a: 1 }, new Error('e'), 1n); \
                    console.log('c'); for (let i = 0; i < 5000; i++) log(i)";
        let (end, events) = run_request(&fleet(), request(script(body))).await;
        assert_eq!(end.status, FleetStatus::Completed, "{end:?}");
        let lines: Vec<&str> = events
            .iter()
            .filter_map(|event| {
                if let Event::Log { message } = event {
                    Some(message.as_str())
                } else {
                    None
                }
            })
            .collect();
        assert_eq!((lines.len(), lines[0].len()), (1_000, 2_000));
        assert_eq!(lines[1..3], ["{\"a\":1} Error: e 1", "c"]);
        assert_eq!(lines[999], "further log lines are dropped after 1000");
        assert!(events.contains(&Event::Phase {
            title: "p".repeat(200)
        }));
    });
}
