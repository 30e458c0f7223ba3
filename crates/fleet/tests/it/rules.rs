//! The rules of a run as a script meets them: caps, gate, failures, retries, arguments, time.

use callboard_agents::{Agents, ProviderErrorKind, ScriptedProvider, ScriptedReply, Tools};
use callboard_fleet::{Event, Finished, Fleet, FleetStatus, Limits};

use crate::harness::{block_on, fleet, fleet_with, request, result, run, run_request, script};

crate::runner::suite![
    a_second_wave_over_the_cap_never_starts,
    no_queued_agent_starts_once_the_cap_is_reached,
    failed_tries_count_against_the_cap,
    no_repair_starts_once_the_cap_is_reached,
    zero_is_a_cap,
    a_script_that_handles_the_cap_itself_completes,
    one_failed_branch_leaves_the_others_alone,
    the_gate_and_the_option_of_parallel_bound_what_runs,
    retries_are_bounded_and_only_for_what_may_pass,
    a_provider_limit_ends_the_run,
    a_run_whose_every_agent_failed_has_failed,
    lists_over_the_limit_are_refused_not_cut,
    arguments_are_checked_before_anything_starts_and_frozen,
    time_and_chance_belong_to_the_run,
    options_with_a_wrong_name_or_type_are_refused,
    a_run_without_providers_says_how_to_configure_one,
    thousands_of_calls_at_once_are_held_and_answered,
];

fn scripted(
    rule: impl Fn(u64) -> ScriptedReply + Send + Sync + 'static,
) -> (Fleet, ScriptedProvider) {
    let provider = ScriptedProvider::by_rule(move |_, earlier| rule(earlier));
    (
        fleet_with(Agents::scripted(provider.clone()), Tools::new(Vec::new())),
        provider,
    )
}

async fn capped(fleet: &Fleet, tokens: u64, max_concurrency: u32, body: &str) -> Finished {
    let mut request = request(script(body));
    request.limits = Limits {
        tokens: Some(tokens),
        max_concurrency: Some(max_concurrency),
        ..Limits::default()
    };
    run_request(fleet, request).await.0
}

fn a_second_wave_over_the_cap_never_starts() {
    block_on(async {
        let (fleet, provider) = scripted(|_| ScriptedReply::text("ok", 500));
        let body = "const all = []; for (let wave = 0; wave < 9; wave++) { \
                    const got = await parallel([1, 2, 3].map((n) => () => agent(`${wave} ${n}`, { max_tokens: 100 }))); \
                    if (!got.some(Boolean)) break; all.push(...got) } return all";
        let end = capped(&fleet, 1_000, 8, body).await;
        assert_eq!((provider.prompts().len(), end.total_tokens), (3, 1_500));
        assert_eq!(
            (end.status, end.code.as_deref()),
            (FleetStatus::Failed, Some("budget_exceeded"))
        );
        assert!(end.error.unwrap().contains("token cap of 1000 was reached"));
        assert_eq!(
            end.result.as_deref(),
            Some(r#"["ok","ok","ok"]"#),
            "partial results survive"
        );
    });
}

fn no_queued_agent_starts_once_the_cap_is_reached() {
    block_on(async {
        let (fleet, provider) = scripted(|n| ScriptedReply::text("ok", 500).after_ms(20 * n));
        let body = "return await parallel(Array.from({ length: 20 }, (_, n) => () => agent(`${n}`, { max_tokens: 100 })))";
        let end = capped(&fleet, 1_000, 4, body).await;
        assert!(provider.prompts().len() <= 5, "{:?}", provider.prompts());
        assert_eq!(
            end.total_tokens,
            500 * u64::try_from(provider.prompts().len()).unwrap()
        );
        assert_eq!(end.code.as_deref(), Some("budget_exceeded"));
        assert!(provider.running_max() <= 4);
    });
}

fn failed_tries_count_against_the_cap() {
    block_on(async {
        let (fleet, provider) =
            scripted(|_| ScriptedReply::failure(ProviderErrorKind::Rejected, "no", 500));
        let body = "return await retry({ max: 10 }, (n) => agent(`${n}`, { max_tokens: 100 }))";
        let end = capped(&fleet, 1_000, 8, body).await;
        assert_eq!((provider.prompts().len(), end.total_tokens), (2, 1_000));
        assert_eq!(
            (end.status, end.code.as_deref()),
            (FleetStatus::Failed, Some("budget_exceeded"))
        );
    });
}

fn no_repair_starts_once_the_cap_is_reached() {
    block_on(async {
        let (fleet, provider) = scripted(|_| ScriptedReply::text("no object", 500));
        let body = "return await agent('x', { max_tokens: 400, schema: { type: 'object' } })\
                    .catch((error) => error.code)";
        let end = capped(&fleet, 500, 8, body).await;
        assert_eq!((provider.prompts().len(), end.total_tokens), (1, 500));
        assert_eq!(
            end.result.as_deref(),
            Some("\"budget_exceeded\""),
            "{end:?}"
        );
        let uncapped = run(&fleet, body).await;
        assert_eq!(uncapped.total_tokens, 1_500, "{uncapped:?}");
        assert_eq!(uncapped.result.as_deref(), Some("\"schema_mismatch\""));
    });
}

fn zero_is_a_cap() {
    block_on(async {
        let (fleet, provider) = scripted(|_| ScriptedReply::text("ok", 1));
        let end = capped(&fleet, 0, 8, "return await agent('x')").await;
        assert_eq!(end.code.as_deref(), Some("budget_exceeded"));
        assert_eq!(provider.prompts().len(), 0);
        let body = "return [budget.total, budget.remaining()]";
        assert_eq!(
            capped(&fleet, 0, 8, body).await.result.as_deref(),
            Some("[0,0]")
        );
    });
}

fn a_script_that_handles_the_cap_itself_completes() {
    block_on(async {
        let (fleet, _) = scripted(|_| ScriptedReply::text("ok", 600));
        let body = "const got = []; try { for (;;) got.push(await agent('x', { max_tokens: 50 })) } \
                    catch (error) { if (error.code !== 'budget_exceeded') throw error } \
                    return [got.length, budget.spent(), budget.remaining()]";
        let end = capped(&fleet, 1_000, 8, body).await;
        assert_eq!(end.status, FleetStatus::Completed, "{end:?}");
        assert_eq!(end.result.as_deref(), Some("[2,1200,0]"));
    });
}

fn one_failed_branch_leaves_the_others_alone() {
    block_on(async {
        let (fleet, provider) = scripted(|n| match n {
            1 => ScriptedReply::failure(ProviderErrorKind::Rejected, "no such model", 7),
            n => ScriptedReply::text(format!("answer {n}"), 10).after_ms(60 - 20 * n),
        });
        let body = "phase('fan'); const all = await parallel([0, 1, 2].map((n) => () => agent(`${n}`, { label: `b${n}` }))); \
                    const piped = await pipeline([1, 2], (n) => n * 10, (n, item, at) => { if (at === 1) throw new RangeError('late'); return [n, item, at] }); \
                    return [all, piped]";
        let end = run(&fleet, body).await;
        assert_eq!(
            end.result.as_deref(),
            Some(r#"[["answer 0",null,"answer 2"],[[10,1,0],null]]"#)
        );
        assert_eq!(
            (end.total_tokens, end.calls.started, end.calls.failed),
            (27, 3, 1)
        );
        let failures: Vec<_> = end
            .failures
            .iter()
            .map(|failure| {
                (
                    failure.code.as_str(),
                    failure.message.as_str(),
                    failure.label.as_deref(),
                    failure.phase.as_deref(),
                )
            })
            .collect();
        assert_eq!(
            failures,
            [
                ("agent_failed", "no such model", Some("b1"), Some("fan")),
                ("script_error", "RangeError: late", None, Some("fan")),
            ]
        );
        assert_eq!(provider.running(), 0);
        let bare = run(&fleet, "return await agent('x', { on_error: 'null' })").await;
        assert_eq!(bare.status, FleetStatus::Completed);
    });
}

fn the_gate_and_the_option_of_parallel_bound_what_runs() {
    block_on(async {
        let body = |options: &str| {
            format!(
                "return (await parallel(Array.from({{ length: 12 }}, (_, n) => () => agent(`${{n}}`)){options})).length"
            )
        };
        for (options, max_concurrency, widest) in
            [("", 3, 3), (", { concurrency: 2 }", 8, 2), ("", 64, 12)]
        {
            let (fleet, provider) = scripted(|_| ScriptedReply::text("ok", 1).after_ms(15));
            let mut request = request(script(&body(options)));
            request.limits.max_concurrency = Some(max_concurrency);
            let (end, events) = run_request(&fleet, request).await;
            assert_eq!(end.result.as_deref(), Some("12"));
            assert_eq!(provider.running_max(), widest, "{options}");
            let last = events
                .into_iter()
                .rev()
                .find(|event| matches!(event, Event::Progress { .. }));
            assert_eq!(
                last,
                Some(Event::Progress {
                    calls_started: 12,
                    calls_done: 12,
                    tokens: 12,
                    tokens_cap: None
                })
            );
        }
    });
}

fn retries_are_bounded_and_only_for_what_may_pass() {
    block_on(async {
        let (fleet, provider) = scripted(|n| match n {
            0 | 1 => ScriptedReply::failure(ProviderErrorKind::Rejected, "busy", 5),
            n => ScriptedReply::text(format!("{n}"), 5),
        });
        let end = run(
            &fleet,
            "return await retry({ max: 5, delay_ms: 5 }, (n) => agent(`try ${n}`))",
        )
        .await;
        assert_eq!(end.result.as_deref(), Some("\"2\""), "{end:?}");
        assert_eq!((provider.prompts().len(), end.total_tokens), (3, 15));
        let fleet = crate::harness::fleet();
        for (body, expected) in [
            (
                "let n = 0; await retry({ max: 4 }, () => { n++; throw 1 }).catch(() => 0); return n",
                "4",
            ),
            (
                "let n = 0; await retry({}, () => { n++; throw 1 }).catch(() => 0); return n",
                "3",
            ),
            (
                "let n = 0; await retry({ max: 9 }, () => { n++; return tool('x') }).catch(() => 0); return n",
                "1",
            ),
            (
                "let n = 0; await retry({ max: 9, retry_if: (e, a) => a < 2 }, () => { n++; throw 1 }).catch(() => 0); return n",
                "2",
            ),
            ("return await retry((n) => n, { max: 2 })", "1"),
            (
                "return await retry({ max: 21 }, () => 1).catch((error) => error.message)",
                "\"retry: max lies between 1 and 20\"",
            ),
        ] {
            assert_eq!(result(&fleet, body).await, expected, "{body}");
        }
    });
}

fn a_provider_limit_ends_the_run() {
    block_on(async {
        let (fleet, provider) = scripted(|n| match n {
            0 => ScriptedReply::failure(ProviderErrorKind::Limit, "quota used up", 0),
            _ => ScriptedReply::text("late", 3).after_ms(30),
        });
        let body = "try { await parallel(Array.from({ length: 30 }, (_, n) => () => retry({ max: 9 }, () => agent(`${n}`, { on_error: 'null' })))) } catch (error) { log(error.code) } return 'anyway'";
        let mut request = request(script(body));
        request.limits.max_concurrency = Some(2);
        let (end, events) = run_request(&fleet, request).await;
        assert_eq!(
            (end.status, end.code.as_deref()),
            (FleetStatus::Failed, Some("provider_limit"))
        );
        assert_eq!(end.error.as_deref(), Some("quota used up"));
        assert!(
            provider.prompts().len() <= 2,
            "no storm: {:?}",
            provider.prompts()
        );
        assert!(events.contains(&Event::Log {
            message: "provider_limit".to_owned()
        }));
    });
}

fn a_run_whose_every_agent_failed_has_failed() {
    block_on(async {
        let (fleet, _) = scripted(|_| ScriptedReply::failure(ProviderErrorKind::Rejected, "no", 1));
        let end = run(
            &fleet,
            "return await parallel([() => agent('a'), () => agent('b')])",
        )
        .await;
        assert_eq!(
            (end.status, end.code.as_deref()),
            (FleetStatus::Failed, Some("all_agents_failed"))
        );
        assert_eq!(
            end.error.as_deref(),
            Some("all 2 agent calls failed (the first: no)")
        );
    });
}

fn lists_over_the_limit_are_refused_not_cut() {
    block_on(async {
        let fleet = fleet();
        for (body, expected) in [
            (
                "return (await parallel(Array.from({ length: 4096 }, () => () => 1))).length",
                "4096",
            ),
            (
                "return await parallel(Array.from({ length: 4097 }, () => () => 1)).catch((e) => e.code)",
                "\"limit_exceeded\"",
            ),
            (
                "return await pipeline(Array.from({ length: 4097 })).catch((e) => e.code)",
                "\"limit_exceeded\"",
            ),
            (
                "return await parallel([agent('x')]).catch((e) => e.message)",
                "\"parallel: item 0 must be a function: write () => agent(\u{2026}), not agent(\u{2026})\"",
            ),
            ("return await parallel([])", "[]"),
        ] {
            assert_eq!(result(&fleet, body).await, expected, "{body}");
        }
        let body = "export const meta = { name: 'n', description: 'd', limits: { agents: 3 } };\n\
                    return (await parallel(Array.from({ length: 5 }, (_, n) => () => agent(`${n}`)))).filter(Boolean).length";
        let (end, _) = run_request(&fleet, request(body.to_owned())).await;
        assert_eq!(end.result.as_deref(), Some("3"));
        assert_eq!(end.failures.len(), 2);
        assert_eq!(end.failures[0].code, "limit_exceeded");
    });
}

fn arguments_are_checked_before_anything_starts_and_frozen() {
    block_on(async {
        let fleet = fleet();
        let declared = "export const meta = { name: 'n', description: 'd', args: { type: 'object', required: ['items'], properties: { items: { type: 'array', items: { type: 'string' } } } } };\n\
                        try { args.items.push('x') } catch (error) { return [error.name, args.items] }";
        let run_with = async |arguments: &str| {
            let mut request = request(declared.to_owned());
            request.arguments = arguments.to_owned();
            run_request(&fleet, request).await
        };
        let (end, _) = run_with(r#"{"items":["a"]}"#).await;
        assert_eq!(end.result.as_deref(), Some(r#"["TypeError",["a"]]"#));
        for (arguments, words) in [
            ("{}", "\"items\" is a required property"),
            (r#"{"items":"a"}"#, "/items"),
            (r#""{\"items\":[]}""#, "the arguments are a string"),
            ("[]", "must be a JSON object"),
            ("{", "no JSON"),
            ("", "required property"),
        ] {
            let (end, events) = run_with(arguments).await;
            assert_eq!(
                (end.status, end.code.as_deref()),
                (FleetStatus::Failed, Some("bad_arguments"))
            );
            assert!(
                end.error.as_deref().unwrap().contains(words),
                "{arguments}: {end:?}"
            );
            assert_eq!(events, [], "nothing started");
        }
    });
}

fn time_and_chance_belong_to_the_run() {
    block_on(async {
        let fleet = fleet();
        let body = "const draws = [random(), Math.random(), uuid()]; const before = now(); await sleep(30); \
                    return { draws, moved: now() - before >= 30, same: Date.now() === now() && new Date().getTime() === now(), \
                    typed: new Date() instanceof Date && new Date(5).getTime() === 5, still: (() => { for (let i = 0; i < 1e5; i++); return Date.now() === now() })() }";
        let first = result(&fleet, body).await;
        assert_eq!(
            first,
            result(&fleet, body).await,
            "the same run draws the same"
        );
        assert!(
            first.ends_with(r#""moved":true,"same":true,"typed":true,"still":true}"#),
            "{first}"
        );
        let mut other = request(script("return random()"));
        let (one, _) = run_request(&fleet, other.clone()).await;
        other.run_id = "run-2".to_owned();
        let (two, _) = run_request(&fleet, other).await;
        assert_ne!(one.result, two.result);
    });
}

fn options_with_a_wrong_name_or_type_are_refused() {
    block_on(async {
        let fleet = fleet();
        for (call, words) in [
            ("agent('x', { schem: {} })", "unknown option \"schem\""),
            (
                "agent('x', { max_tokens: 0 })",
                "must be a whole number from 1",
            ),
            ("agent('x', { schema: 'object' })", "must be of type object"),
            ("agent('x', { tools: ['a'] })", "come later"),
            ("agent('x', { isolation: 'worktree' })", "comes later"),
            ("agent('x', 5)", "options must be an object"),
            ("tool('x', 'y')", "args must be an object"),
            ("sleep(-1)", "sleep(ms)"),
            (
                "agent('x', { schema: { type: 'array' } })",
                "must describe an object",
            ),
            (
                "agent('x', { schema: { type: 'object', $ref: 'https://e.org' } })",
                "only references inside",
            ),
            (
                "agent('x', { agent: 'nobody' })",
                "no provider is named \"nobody\"",
            ),
            (
                "tool('mcp__shell__run', { command: 'id' })",
                "approvals do not exist yet: only read-only tools on granted folders run",
            ),
        ] {
            let body = format!("try {{ await {call} }} catch (error) {{ return error.message }}");
            let end = run(&fleet, &body).await;
            let told = end.result.or(end.error).unwrap();
            assert!(
                told.replace("\\\"", "\"")
                    .replace("yet, only", "yet: only")
                    .contains(words),
                "{call}: {told}"
            );
        }
    });
}

fn a_run_without_providers_says_how_to_configure_one() {
    block_on(async {
        let fleet = fleet_with(Agents::none(), Tools::new(Vec::new()));
        let end = run(&fleet, "return await agent('x')").await;
        assert_eq!(end.code.as_deref(), Some("agent_failed"));
        assert!(end.error.unwrap().contains("[providers.NAME]"));
    });
}

fn thousands_of_calls_at_once_are_held_and_answered() {
    block_on(async {
        let (fleet, _) = scripted(|n| ScriptedReply::text(n.to_string(), 1));
        let body = "export const meta = { name: 'n', description: 'd', limits: { agents: 1000, max_concurrency: 64 } };\n\
                    const answers = await parallel(Array.from({ length: 1000 }, (_, n) => () => agent(`${n}`))); \
                    await parallel(Array.from({ length: 3000 }, () => () => sleep(1))); return new Set(answers).size";
        let (end, _) = run_request(&fleet, request(body.to_owned())).await;
        assert_eq!(
            (end.result.as_deref(), end.total_tokens),
            (Some("1000"), 1_000)
        );
        assert_eq!(end.calls.succeeded, 1_000);
    });
}
