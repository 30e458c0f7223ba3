//! Scripts that try not to end, to take all memory, or to break the engine: the table of
//! research/engine.md §1.3, each in a real script process under the real limits. Each ends with
//! the stated code, and the next run works.

use callboard_agents::{Agents, ScriptedProvider, ScriptedReply, Tools};
use callboard_fleet::{Fleet, Limits, RunRequest};

use crate::harness::{
    block_on, fleet, fleet_with, join, request, result, run, run_request, script,
};

crate::runner::suite![
    loops_that_the_engine_can_interrupt_end_with_their_slice,
    microtasks_without_end_stop_between_two_jobs,
    builtins_that_never_look_up_are_ended_by_the_kernel,
    more_builtins_that_never_look_up_are_ended_by_the_kernel,
    whoever_takes_all_memory_is_told_so,
    nesting_without_end_is_an_error_of_the_script,
    what_would_block_or_observe_the_machine_is_not_there,
    no_prototype_of_the_script_changes_what_the_host_is_told,
    calls_that_wait_fill_no_memory_but_the_scripts_own,
];

/// Agents that answer `ok` for 100 tokens.
fn ok_fleet(delay_ms: u64) -> (Fleet, ScriptedProvider) {
    let provider =
        ScriptedProvider::by_rule(move |_, _| ScriptedReply::text("ok", 100).after_ms(delay_ms));
    let agents = Agents::scripted(provider.clone());
    (fleet_with(agents, Tools::new(Vec::new())), provider)
}

fn one_at_a_time(body: &str, tokens: Option<u64>) -> RunRequest {
    RunRequest {
        limits: Limits {
            tokens,
            max_concurrency: Some(1),
            ..Limits::default()
        },
        ..request(script(body))
    }
}

/// Runs each body, two at a time, and checks its code.
fn expect(codes: &[&str], bodies: &[&str]) {
    block_on(async {
        let fleet = fleet();
        for pair in bodies.chunks(2) {
            let runs = pair.iter().map(|body| run(&fleet, body));
            let ends = join(runs).await;
            for (body, end) in pair.iter().zip(ends) {
                let code = end.code.as_deref().unwrap_or("completed");
                assert!(codes.contains(&code), "{body}\n{end:?}");
            }
        }
        assert_eq!(result(&fleet, "return 1").await, "1", "the next run works");
    });
}

fn loops_that_the_engine_can_interrupt_end_with_their_slice() {
    expect(
        &["cpu_limit"],
        &[
            "for (;;) {}",
            "for (;;) { try { for (;;) {} } catch (error) {} }",
            "for (;;) { try { for (;;) {} } finally { continue } }",
            "/^(a+)+$/.test('a'.repeat(40) + 'b')",
            "[].indexOf.call({ length: 2 ** 53 - 1 }, 1)",
            "[].lastIndexOf.call({ length: 2 ** 53 - 1 }, 1)",
            "for (;;) { try { [].push.call([], ...'x'.repeat(1000)) } catch (error) {} }",
            "const f = () => { try { f() } catch (error) { } }; for (;;) f()",
            "for (;;) JSON.parse(JSON.stringify(Array.from({ length: 1000 }, (_, i) => i)))",
        ],
    );
}

fn microtasks_without_end_stop_between_two_jobs() {
    // A chain of promises that wait for each other ends for want of memory, and its body waits on.
    expect(
        &["cpu_limit", "deadlock"],
        &[
            "for (;;) await null",
            "const storm = () => queueMicrotask(storm); storm(); await new Promise(() => {})",
            "const chain = () => Promise.resolve().then(chain); chain(); await new Promise(() => {})",
            "await new Promise((resolve) => { const again = () => { try { for (;;) {} } finally { queueMicrotask(again) } }; again() })",
        ],
    );
}

fn builtins_that_never_look_up_are_ended_by_the_kernel() {
    expect(
        &["cpu_limit"],
        &[
            "return new Array(1e9) + ''",
            "[].sort.call({ length: 2 ** 32 - 1 })",
            "[].join.call({ length: 2 ** 32 - 1 })",
            "[].reverse.call({ length: 2 ** 32 - 1 })",
            "[].splice.call({ length: 2 ** 32 - 1 }, 0, 1)",
        ],
    );
}

fn more_builtins_that_never_look_up_are_ended_by_the_kernel() {
    expect(
        &["cpu_limit", "memory_limit"],
        &[
            "[].copyWithin.call({ length: 2 ** 53 - 1 }, 0, 1)",
            "[].unshift.call({ length: 2 ** 53 - 2 }, 1)",
            "String.raw({ raw: { length: 2 ** 32 - 1 } })",
            "for (;;) new Float64Array(4e6).sort()",
            "const s = 'a'.repeat(3e7); for (;;) s.includes('ab')",
        ],
    );
}

fn whoever_takes_all_memory_is_told_so() {
    expect(
        &["memory_limit", "script_error"],
        &[
            "const all = []; for (;;) all.push('x'.repeat(1e6) + all.length)",
            "let s = 'x'; for (;;) s += s",
            "return new Array(1e9).fill(0)",
            "return 'x'.repeat(2 ** 30)",
            "return new ArrayBuffer(2 ** 31)",
            "const all = []; for (;;) all.push({ all })",
            "return 'ab'.repeat(1e6).replaceAll('a', 'x'.repeat(100))",
        ],
    );
    // Slow enough, or caught again and again: then it is the time that ends it.
    expect(
        &["cpu_limit", "memory_limit", "script_error"],
        &[
            "const map = new Map(); for (let i = 0; ; i++) map.set(i, 'y'.repeat(1000) + i)",
            "for (;;) { try { const all = []; for (;;) all.push('x'.repeat(1e6) + all.length) } catch (error) {} }",
        ],
    );
}

fn nesting_without_end_is_an_error_of_the_script() {
    expect(
        &["script_error", "result_not_json", "memory_limit"],
        &[
            "const f = () => f(); f()",
            "const o = { get x() { return this.x } }; return o.x",
            "const p = new Proxy({}, { get: (target, key, self) => self[key] }); return p.x",
            "function* g() { yield* g() } [...g()]",
            "let a = []; for (let i = 0; i < 1e5; i++) a = [a]; return a",
            "return JSON.parse('['.repeat(1e5))",
            "return eval('('.repeat(1e5))",
            "return new RegExp('('.repeat(1e5))",
            "let a = []; for (let i = 0; i < 500; i++) a = [a]; return a",
            "const o = {}; o.toJSON = () => o; o.self = o; return [o, { o, toString: null }]",
        ],
    );
}

fn what_would_block_or_observe_the_machine_is_not_there() {
    block_on(async {
        let fleet = fleet();
        let gone = "return ['WeakRef', 'FinalizationRegistry', 'performance', 'Atomics', \
                    'SharedArrayBuffer', 'process', 'require', 'fetch', 'setTimeout', 'std', 'os', \
                    'WebAssembly', 'XMLHttpRequest', '__host', 'emit', 'settings']\
                    .filter((name) => name in globalThis)";
        assert_eq!(result(&fleet, gone).await, "[]");
        let import = run(&fleet, "return await import('std')").await;
        assert_eq!(import.code.as_deref(), Some("script_error"), "{import:?}");
        let body = "Array.prototype.push = JSON.stringify = JSON.parse = \
                    Map.prototype.get = Reflect.apply = undefined; Object.prototype.label = 'x'; \
                    return [await agent('a'), await parallel([() => agent('b')])]";
        let end = run(&fleet, body).await;
        assert_eq!(
            end.result.as_deref(),
            Some(r#"["answer: a",["answer: b"]]"#),
            "{end:?}"
        );
    });
}

fn no_prototype_of_the_script_changes_what_the_host_is_told() {
    let calls = "const ends = []; for (let n = 0; n < 6; n++) \
                 ends[n] = agent(`call ${n}`, { max_tokens: 50 }).catch((error) => error.code); \
                 let all = ''; for (let n = 0; n < 6; n++) all += (await ends[n]) + ' '; return all";
    for trick in [
        "",
        "Object.prototype.toJSON = function () { return 'id' in this ? { ...this, id: 1 } : this }",
        "Object.prototype.toJSON = () => ({ id: 1, kind: 'agent', identity: { prompt: 'x' } })",
        "Object.prototype.toJSON = () => undefined",
        "Array.prototype.toJSON = String.prototype.toJSON = Number.prototype.toJSON = () => 1",
        "for (const name of ['id', 'kind', 'identity', 'prompt', 'label', 'phase']) \
         Object.defineProperty(Object.prototype, name, { get: () => 1, set() {} })",
        "for (const name of ['id', 'kind', 'identity']) \
         Object.defineProperty(Object.prototype, name, { get() { throw 1 }, set() { throw 1 } })",
        "Object.assign(Object.prototype, { max_tokens: -1, timeout_ms: 0, schema: 1, agent: 'x', \
         model: 2, on_error: 'null', isolation: undefined })",
        "String.prototype.toWellFormed = String.prototype.slice = () => '{\"id\":1}'",
        "JSON.stringify = () => '1'; globalThis.String = () => '1'",
    ] {
        block_on(async {
            let (fleet, provider) = ok_fleet(1);
            let end = run_request(
                &fleet,
                one_at_a_time(&format!("{trick}; {calls}"), Some(250)),
            )
            .await
            .0;
            let seen = "ok ok ok budget_exceeded budget_exceeded budget_exceeded ";
            assert_eq!(end.result, Some(format!("\"{seen}\"")), "{trick}: {end:?}");
            assert_eq!(
                (end.total_tokens, provider.running_max()),
                (300, 1),
                "{trick}"
            );
            assert_eq!(
                provider.prompts(),
                ["call 0", "call 1", "call 2"],
                "{trick}"
            );
        });
    }
    block_on(async {
        // Calls made while another one is written down still come in the order of their numbers.
        let (fleet, _) = ok_fleet(1);
        let body = "const sly = { toJSON() { agent('inner'); return {} } }; \
                    const got = tool('none', sly).catch((error) => error.code); \
                    return [await got, await agent('outer')]";
        let end = run(&fleet, body).await;
        assert_eq!(
            end.result.as_deref(),
            Some(r#"["tool_refused","ok"]"#),
            "{end:?}"
        );
    });
}

fn calls_that_wait_fill_no_memory_but_the_scripts_own() {
    block_on(async {
        let (fleet, provider) = ok_fleet(600_000);
        let body = "const big = 'x'.repeat(900000); let refused = 0; \
                    for (let n = 0; n < 40; n++) { \
                    agent(big).catch((error) => { if (error.code === 'limit_exceeded') refused++ }); \
                    await sleep(0) } await sleep(1); \
                    const whole = await agent('x'.repeat(1048577)).catch((error) => error.code); \
                    const long = await tool('x', { a: 'x'.repeat(4e6) }).catch((error) => error.code); \
                    return [refused, whole, long]";
        let end = run_request(&fleet, one_at_a_time(body, None)).await.0;
        // One runs, and 18 fit into what may wait.
        let (code, calls) = (end.code.as_deref(), provider.prompts().len());
        assert_eq!((code, calls), (Some("all_agents_failed"), 1), "{end:?}");
        assert_eq!(
            end.result.as_deref(),
            Some(r#"[21,"limit_exceeded","limit_exceeded"]"#)
        );
    });
}
