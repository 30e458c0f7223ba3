//! How runs are stopped, and what a script process cannot reach.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use callboard_agents::{Agents, ScriptedProvider, ScriptedReply, Tools};
use callboard_fleet::{Event, Finished, Fleet, FleetStatus, RunRequest};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::harness::{block_on, fleet, fleet_with, join, request, result, script};

crate::runner::suite![
    a_cancel_ends_a_busy_script,
    a_cancel_ends_a_script_that_the_engine_cannot_interrupt,
    a_cancel_reaches_agents_and_lets_finally_blocks_run,
    after_a_cancel_no_call_starts,
    a_cancel_before_the_start_is_a_cancel,
    a_run_longer_than_its_limit_is_stopped,
    dropping_a_run_ends_its_process,
    the_loser_of_a_race_is_aborted_before_the_run_is_reported,
    a_script_process_has_no_environment_no_folder_and_no_files,
    a_script_process_does_not_outlive_a_killed_parent,
    two_runs_do_not_wait_for_each_other,
];

/// Runs a body and cancels it once it logged something.
async fn cancelled(fleet: &Fleet, body: &str) -> (Finished, Vec<Event>) {
    let (events, mut seen) = mpsc::unbounded_channel();
    let cancel = CancellationToken::new();
    let run = fleet.run(request(script(body)), cancel.clone(), events);
    let watch = async {
        let mut all = Vec::new();
        while let Some(event) = seen.recv().await {
            if matches!(event, Event::Log { .. }) {
                cancel.cancel();
            }
            all.push(event);
        }
        all
    };
    tokio::join!(run, watch)
}

fn is_cancelled(end: &Finished) {
    assert_eq!(
        (end.status, end.code.as_deref()),
        (FleetStatus::Cancelled, Some("cancelled"))
    );
    assert_eq!(end.error.as_deref(), Some("the run was cancelled"));
}

fn a_cancel_ends_a_busy_script() {
    block_on(async {
        let (end, _) = cancelled(&fleet(), "log('go'); await sleep(0); for (;;) {}").await;
        is_cancelled(&end);
    });
}

fn a_cancel_ends_a_script_that_the_engine_cannot_interrupt() {
    block_on(async {
        let body = "log('go'); await sleep(0); return new Array(1e9) + ''";
        is_cancelled(&cancelled(&fleet(), body).await.0);
    });
}

fn a_cancel_reaches_agents_and_lets_finally_blocks_run() {
    block_on(async {
        let provider =
            ScriptedProvider::by_rule(|_, _| ScriptedReply::text("late", 1).after_ms(60_000));
        let fleet = fleet_with(Agents::scripted(provider.clone()), Tools::new(Vec::new()));
        let body = "setup(); async function setup() { await sleep(20); log('go') } \
                    try { await parallel([1, 2, 3].map((n) => () => retry({ max: 5 }, () => agent(`${n}`)))) } \
                    catch (error) { phase(error.code); throw error } finally { phase('tidied') }";
        let (end, events) = cancelled(&fleet, body).await;
        is_cancelled(&end);
        assert_eq!(provider.running(), 0, "requests in flight are aborted");
        assert_eq!(provider.prompts().len(), 3, "no new one starts");
        for title in ["cancelled", "tidied"] {
            assert!(
                events.contains(&Event::Phase {
                    title: title.to_owned()
                }),
                "{events:?}"
            );
        }
        assert_eq!(end.calls.failed, 3);
        assert!(end.total_tokens > 0, "what was sent counts");
    });
}

fn after_a_cancel_no_call_starts() {
    block_on(async {
        let provider =
            ScriptedProvider::by_rule(|_, _| ScriptedReply::text("late", 1).after_ms(60_000));
        let fleet = fleet_with(Agents::scripted(provider.clone()), Tools::new(Vec::new()));
        let body = "log('go'); for (let n = 0; n < 50; n++) { try { await agent(`${n}`) } catch (error) { } } return 'done'";
        let (end, _) = cancelled(&fleet, body).await;
        is_cancelled(&end);
        assert!(provider.prompts().len() <= 1, "{:?}", provider.prompts());
    });
}

fn a_cancel_before_the_start_is_a_cancel() {
    block_on(async {
        let cancel = CancellationToken::new();
        cancel.cancel();
        let (events, _seen) = mpsc::unbounded_channel();
        let end = fleet()
            .run(request(script("return await agent('x')")), cancel, events)
            .await;
        is_cancelled(&end);
        assert_eq!(end.calls.started, 0);
    });
}

fn a_run_longer_than_its_limit_is_stopped() {
    block_on(async {
        let mut request = request(script("await sleep(60000)"));
        request.limits.wall_s = Some(1);
        let (end, _) = crate::harness::run_request(&fleet(), request).await;
        assert_eq!(
            (end.status, end.code.as_deref()),
            (FleetStatus::Failed, Some("wall_limit"))
        );
    });
}

/// Script processes that this process started.
fn script_processes() -> Vec<PathBuf> {
    let own = std::process::id().to_string();
    std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            let status = std::fs::read_to_string(path.join("stat")).unwrap_or_default();
            let parent = status
                .rsplit(')')
                .next()
                .and_then(|rest| rest.split(' ').nth(2));
            parent == Some(own.as_str()) && !status.contains(") Z ")
        })
        .filter(|path| {
            let line = std::fs::read_to_string(path.join("cmdline")).unwrap_or_default();
            line.contains(crate::CHILD)
        })
        .collect()
}

/// Waits, in small steps of real time, until something outside of our control is so.
async fn until(mut holds: impl FnMut() -> bool) {
    while !holds() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn dropping_a_run_ends_its_process() {
    block_on(async {
        let fleet = fleet();
        let (events, mut seen) = mpsc::unbounded_channel();
        let run = fleet.run(
            request(script("log('go'); await sleep(60000)")),
            CancellationToken::new(),
            events,
        );
        let mut run = Box::pin(run);
        loop {
            tokio::select! {
                end = &mut run => panic!("{end:?}"),
                event = seen.recv() => if matches!(event, Some(Event::Log { .. })) { break },
            }
        }
        assert_eq!(script_processes().len(), 1);
        drop(run);
        until(|| script_processes().is_empty()).await;
        assert_eq!(result(&fleet, "return 1").await, "1");
    });
}

fn the_loser_of_a_race_is_aborted_before_the_run_is_reported() {
    block_on(async {
        let provider = ScriptedProvider::by_rule(|_, n| {
            ScriptedReply::text(n.to_string(), 10).after_ms(if n == 0 { 5 } else { 60_000 })
        });
        let fleet = fleet_with(Agents::scripted(provider.clone()), Tools::new(Vec::new()));
        let body = "return await Promise.race([agent('a'), agent('b')])";
        assert_eq!(result(&fleet, body).await, "\"0\"");
        assert_eq!(provider.running(), 0);
        assert!(script_processes().is_empty());
    });
}

fn a_script_process_has_no_environment_no_folder_and_no_files() {
    block_on(async {
        // A descriptor that a careless library left open for children.
        let leaked = std::fs::File::open("/").unwrap();
        let kept = nix::fcntl::fcntl(&leaked, nix::fcntl::FcntlArg::F_DUPFD(50)).unwrap();
        assert!(kept >= 50);
        let fleet = fleet();
        let (events, mut seen) = mpsc::unbounded_channel();
        let cancel = CancellationToken::new();
        let run = fleet.run(
            request(script("log('go'); await sleep(60000)")),
            cancel.clone(),
            events,
        );
        let look = async {
            while !matches!(seen.recv().await, Some(Event::Log { .. })) {}
            let [process] = script_processes().try_into().unwrap();
            let read = |name: &str| std::fs::read_to_string(process.join(name)).unwrap();
            assert_eq!(read("environ"), "TZ=UTC\0");
            assert_eq!(
                std::fs::read_link(process.join("cwd")).unwrap(),
                PathBuf::from("/")
            );
            let descriptors = std::fs::read_dir(process.join("fd")).unwrap().count();
            assert_eq!(descriptors, 3);
            assert!(read("status").contains("NoNewPrivs:\t1"));
            let group = read("stat")
                .rsplit(')')
                .next()
                .unwrap()
                .split(' ')
                .nth(3)
                .map(str::to_owned);
            let own = process.file_name().unwrap().to_str().map(str::to_owned);
            assert_eq!(group, own, "a Ctrl-C does not reach it");
            let limits = read("limits");
            for name in [
                "Max core file size         0",
                "Max file size              0",
            ] {
                let squeeze = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
                assert!(squeeze(&limits).contains(&squeeze(name)), "{limits}");
            }
            cancel.cancel();
        };
        tokio::join!(run, look);
    });
}

fn a_script_process_does_not_outlive_a_killed_parent() {
    block_on(async {
        let mut engine = Command::new(std::env::current_exe().unwrap())
            .arg(crate::BUSY_ENGINE)
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut output =
            tokio::process::ChildStdout::from_std(engine.stdout.take().unwrap()).unwrap();
        let mut line = [0; 8];
        tokio::io::AsyncReadExt::read_exact(&mut output, &mut line)
            .await
            .unwrap();
        let parent = engine.id().to_string();
        let children = move || {
            let path = format!("/proc/{parent}/task");
            std::fs::read_dir(path)
                .into_iter()
                .flatten()
                .filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("children")).ok())
                .flat_map(|text| {
                    text.split_whitespace()
                        .map(str::to_owned)
                        .collect::<Vec<_>>()
                })
                .collect::<Vec<_>>()
        };
        let scripts = children();
        assert_eq!(scripts.len(), 2, "a waiting one and a busy one");
        engine.kill().unwrap();
        engine.wait().unwrap();
        let alive = |pid: &String| {
            let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            !status.is_empty() && !status.contains(") Z ")
        };
        until(|| !scripts.iter().any(alive)).await;
    });
}

/// What the helper process of the test above does: runs two scripts that do not end by
/// themselves soon, and says when both run.
#[allow(clippy::print_stdout, reason = "the pipe to the test")]
pub(crate) fn busy_engine() {
    block_on(async {
        let fleet = fleet();
        let (events, mut seen) = mpsc::unbounded_channel();
        let body = |rest: &str| RunRequest {
            ..request(script(&format!("log('go'); await sleep(0); {rest}")))
        };
        let busy =
            "for (;;) { const until = now() + 1; for (let i = 0; i < 1e6; i++); await sleep(0) }";
        let runs = ["await sleep(60000)", busy]
            .map(|rest| fleet.run(body(rest), CancellationToken::new(), events.clone()));
        let say = async {
            for _ in 0..2 {
                while !matches!(seen.recv().await, Some(Event::Log { .. })) {}
            }
            println!("running");
            std::future::pending::<()>().await;
        };
        tokio::join!(join(runs.into_iter()), say);
    });
}

fn two_runs_do_not_wait_for_each_other() {
    block_on(async {
        let fleet = fleet();
        let stuck = async { cancelled(&fleet, "log('go'); await sleep(0); for (;;) {}").await };
        let quick = async { result(&fleet, "await sleep(5); return await agent('x')").await };
        let (stuck, quick) = tokio::join!(stuck, quick);
        is_cancelled(&stuck.0);
        assert_eq!(quick, "\"answer: x\"");
    });
}
